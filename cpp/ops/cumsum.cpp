// y[i] = x[0] + ... + x[i] along an axis; reversed: x[i] + ... + x[n - 1], which is its gradient.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

static Tensor cumsum(const Tensor& x, int64_t axis, bool reverse) {
  return dispatch(ops::cumsum, {x}, {{"axis", axis}, {"reverse", reverse}})[0];
}

Tensor cumsum(const Tensor& x, int axis) { return cumsum(x, normal_axis("cumsum", axis, x.rank()), false); }

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  stored_axis("cumsum", attrs, in[0].shape.rank());
  attrs.flag("reverse");
  check<DTypeError>(is_float(in[0].dtype) || is_index(in[0].dtype),
                    "cumsum: needs a float dtype, int64 or int32, got ", in[0]);
  return {in[0]};
}

static Tensors backward(const Grad& g) {
  return {cumsum(g.dy[0], g.attrs.i("axis"), !g.attrs.flag("reverse"))};
}

const OpDef ops::cumsum = {"cumsum", infer, backward, saves(), saves()};

}  // namespace plmcore
