// y[..., v] = 1 where v == ids[...], else 0.   ids int [...] -> [..., V]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor one_hot(const Tensor& ids, Dim V, DType dtype) {
  return dispatch(ops::one_hot, {ids}, {{"size", V}, {"dtype", dtype}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  require_index("one_hot", in[0]);
  Shape shape = in[0].shape;
  shape.push_back(attrs.dim("size"));
  return {{shape, attrs.dtype("dtype")}};
}

const OpDef ops::one_hot = {"one_hot", infer,   no_grad,
                            saves(),   saves(), {.meets = can_meet(DataError::index)}};

}  // namespace plmcore
