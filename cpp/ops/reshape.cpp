// The same elements in the same order under another shape. Shares memory.
#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor reshape(const Tensor& x, const Shape& shape) {
  return dispatch(ops::reshape, {x}, {{"shape", shape}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const Shape& shape = attrs.dims("shape");
  check(require_equal(in[0].shape.numel(), shape.numel()), "reshape: ", in[0], " cannot become ", shape);
  return {{shape, in[0].dtype}};
}

static Tensors backward(const Grad& g) { return {reshape(g.dy[0], g.in[0].shape())}; }

const OpDef ops::reshape = {
    "reshape", infer,   backward,
    saves(),   saves(), {.view = [](const Spec&, const Attrs&, size_t) { return int64_t{0}; }}};

}  // namespace plmcore
