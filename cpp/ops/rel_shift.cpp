// y[..., i, j] = x[..., i, j + T - 1 - i], 0 beyond the last column.   x [..., T, L] -> [..., T, S]
// The columns of x are distances from query to key, falling by one per column; row T - 1 is not moved. L = S
// holds the distances S - 1 ... 0 (Transformer-XL), L = S + T - 1 also those to later keys, down to 1 - T
// (XLNet).
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor rel_shift(const Tensor& x, Dim S) { return dispatch(ops::rel_shift, {x}, {{"S", S}})[0]; }

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  check(in[0].shape.rank() >= 2, "rel_shift: x must be [..., T, L], got ", in[0]);
  check<DTypeError>(is_float(in[0].dtype), "rel_shift: needs a float dtype, got ", in[0]);
  return {{in[0].shape.with_last(attrs.dim("S")), in[0].dtype}};
}

static Tensors backward(const Grad& g) {
  return dispatch(ops::rel_shift_grad, {g.dy[0]}, {{"L", g.in[0].shape().back()}});
}

const OpDef ops::rel_shift = {"rel_shift", infer, backward, saves(), saves()};

// dy [..., T, S] -> dx [..., T, L]
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  float_dtype("rel_shift_grad", in, {0});
  check(in[0].shape.rank() >= 2, "rel_shift_grad: dy must be [..., T, S], got ", in[0]);
  return {{in[0].shape.with_last(attrs.dim("L")), in[0].dtype}};
}

const OpDef ops::rel_shift_grad = {"rel_shift_grad", infer_grad, no_grad};

}  // namespace plmcore
