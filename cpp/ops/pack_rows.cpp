// The rows of x where the mask is true, in order, and their numbers b * T + t.   x [B, T, ...]; mask bool [B,
// T] -> rows [N, ...], index int64 [N]. N is known when the op runs; it is at most B * T.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensors pack_rows(const Tensor& x, const Tensor& mask) { return dispatch(ops::pack_rows, {x, mask}); }

static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(2);
  const Spec &x = in[0], &mask = in[1];
  check<DTypeError>(mask.dtype == DType::boolean, "pack_rows: mask must be bool, got ", mask);
  check(x.shape.rank() >= 2 && mask.shape.matches({x.shape[0], x.shape[1]}),
        "pack_rows: x must be [B, T, ...] and mask [B, T], got ", x, " and ", mask);
  Shape rows = {Dim::fresh_symbol("N")};
  for (int i = 2; i < x.shape.rank(); ++i) rows.push_back(x.shape[i]);
  return {{rows, x.dtype}, {{rows[0]}, DType::int64}};
}

static SmallVector<int64_t, 2> count(const Tensors& in, const Attrs&) {
  const Tensor mask = in[1].to(cpu());
  int64_t n = 0;
  for (int64_t i = 0, end = mask.numel(); i < end; ++i) n += mask.as<uint8_t>()[i] != 0;
  return {n};
}

static Tensors backward(const Grad& g) {
  return {unpack_rows(g.dy[0], g.out[1], g.in[0].shape()[0], g.in[0].shape()[1]), {}};
}

const OpDef ops::pack_rows = {"pack_rows", infer, backward, saves(), saves(1), {.measure = count}};

}  // namespace plmcore
