// y = x with y[index[j]] += updates[j] for each j; repeats add up.
// x [n, ...], index int of any shape S with values below n, updates [S, ...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor scatter_add(const Tensor& x, const Tensor& index, const Tensor& updates) {
  return dispatch(ops::scatter_add, {x, index, updates})[0];
}

static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(3);
  const Spec &x = in[0], &index = in[1], &updates = in[2];
  require_index("scatter_add", index);
  check(x.shape.rank() >= 1, "scatter_add: x must have at least one axis, got ", x);
  check<DTypeError>(x.dtype == updates.dtype && (is_float(x.dtype) || is_index(x.dtype)),
                    "scatter_add: x and updates must have one dtype, a float one, int64 or int32, got ", x,
                    " and ", updates);
  Shape want = index.shape;
  for (int a = 1; a < x.shape.rank(); ++a) want.push_back(x.shape[a]);
  check(updates.shape.matches(want), "scatter_add: updates must be ", want,
        " (sizes of the index, then a row of x), got ", updates, "; x is ", x);
  return {x};
}

static Tensors backward(const Grad& g) {
  return {g.dy[0], {}, g.want(2) ? index_select(g.dy[0], g.in[1], 0) : Tensor()};
}

const OpDef ops::scatter_add = {"scatter_add", infer,   backward,
                                saves(1),      saves(), {.meets = can_meet(DataError::index)}};

}  // namespace plmcore
