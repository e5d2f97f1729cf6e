// x with before[a] and after[a] elements of `value` around it along each axis a.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor pad(const Tensor& x, const Shape& before, const Shape& after, double value) {
  return dispatch(ops::pad, {x}, {{"before", before}, {"after", after}, {"value", value}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const Shape &before = attrs.dims("before"), &after = attrs.dims("after");
  const int rank = in[0].shape.rank();
  check(before.rank() == rank && after.rank() == rank,
        "pad: before and after must have one size for each axis of ", in[0], ", got ", before, " and ",
        after);
  require_element("pad", "value", attrs.f("value"), in[0].dtype);
  Shape shape;
  for (int a = 0; a < rank; ++a) shape.push_back(before[a] + in[0].shape[a] + after[a]);
  return {{shape, in[0].dtype}};
}

static Tensors backward(const Grad& g) {
  const Shape &before = g.attrs.dims("before"), &after = g.attrs.dims("after");
  Tensor dx = g.dy[0];
  for (int a = 0; a < before.rank(); ++a)
    if (!before[a].is(0) || !after[a].is(0)) dx = slice(dx, a, before[a], before[a] + g.in[0].shape()[a]);
  return {dx};
}

const OpDef ops::pad = {"pad", infer, backward, saves(), saves()};

}  // namespace plmcore
