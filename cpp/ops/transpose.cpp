// The axes in another order: y's axis i is x's axis order[i].
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor transpose(const Tensor& x, const Axes& order) {
  Shape axes;
  for (int a : order) axes.push_back(normal_axis("transpose", a, x.rank()));
  return dispatch(ops::transpose, {x}, {{"order", axes}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const Shape& order = attrs.dims("order");
  Shape shape;
  unsigned seen = 0;
  for (Dim a : order) {
    check(a.value() < in[0].shape.rank(), "transpose: ", order, " is not an order of the axes of ", in[0]);
    seen |= 1u << a.value();
    shape.push_back(in[0].shape[static_cast<int>(a.value())]);
  }
  check(order.rank() == in[0].shape.rank() && seen == (1u << order.rank()) - 1, "transpose: ", order,
        " is not an order of the axes of ", in[0]);
  return {{shape, in[0].dtype}};
}

static Tensors backward(const Grad& g) {
  const Shape& order = g.attrs.dims("order");
  Axes back;
  back.resize(static_cast<size_t>(order.rank()));
  for (int i = 0; i < order.rank(); ++i) back[static_cast<size_t>(order[i].value())] = i;
  return {transpose(g.dy[0], back)};
}

const OpDef ops::transpose = {"transpose", infer, backward, saves(), saves()};

}  // namespace plmcore
