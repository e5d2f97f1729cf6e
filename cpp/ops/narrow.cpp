// y = x[start : start + length] along the first axis. Shares memory.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor narrow(const Tensor& x, Dim start, Dim length) {
  return dispatch(ops::narrow, {x}, {{"start", start}, {"length", length}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const Dim start = attrs.dim("start"), length = attrs.dim("length");
  check(in[0].shape.rank() >= 1, "narrow: x must have at least one axis, got ", in[0]);
  require_range("narrow", start, start + length, in[0].shape[0]);
  Shape shape = in[0].shape;
  shape[0] = length;
  return {{shape, in[0].dtype}};
}

static Tensors backward(const Grad& g) {
  const Dim start = g.attrs.dim("start");
  return {slice_grad(g.dy[0], 0, start, start + g.attrs.dim("length"), 1, g.in[0].shape()[0])};
}

static int64_t offset(const Spec& x, const Attrs& attrs, size_t) {
  int64_t row = 1;
  for (int a = 1; a < x.shape.rank(); ++a) row *= x.shape[a].value();
  return attrs.dim("start").value() * row;
}

const OpDef ops::narrow = {"narrow", infer, backward, saves(), saves(), {.view = offset}};

}  // namespace plmcore
