// The k largest elements of the last axis in descending order, and their positions, int64; the first of
// equals first. NaN counts as the largest.   x [..., n] -> [..., k] twice
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensors topk(const Tensor& x, Dim k) { return dispatch(ops::topk, {x}, {{"k", k}}); }

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  float_dtype("topk", in, {0});
  const Dim k = attrs.dim("k");
  check(in[0].shape.rank() >= 1, "topk: x must have at least one axis, got ", in[0]);
  const Dim n = in[0].shape.back();
  check(!k.known() || !n.known() || k.value() <= n.value(),
        "topk: k must be at most the last axis of x, got ", k, "; x is ", in[0]);
  const Shape shape = in[0].shape.with_last(k);
  return {{shape, in[0].dtype}, {shape, DType::int64}};
}

static Tensors backward(const Grad& g) {
  const Shape& shape = g.in[0].shape();
  return dispatch(ops::gather_grad, {g.dy[0], g.out[1]},
                  {{"axis", shape.rank() - 1}, {"size", shape.back()}});
}

// A heap of k values (double holds any of them) and positions for each worker.
const OpDef ops::topk = {"topk", infer, backward, saves(), saves(1)};

}  // namespace plmcore
