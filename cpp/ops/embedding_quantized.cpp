// y[i] = weight[ids[i]], times scale[ids[i]] where there is one, for inference.   weight int8 [V, C] with
// scale float32 [V], or bfloat16 [V, C]; ids [...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor embedding_quantized(const Tensor& weight, const Tensor& ids, const Tensor& scale) {
  return dispatch(ops::embedding_quantized, {weight, ids, scale})[0];
}

static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(3);
  check(in[0].shape.rank() == 2, "embedding_quantized: weight must be [V, C], got ", in[0]);
  require_scale("embedding_quantized", in, 0, 2);
  require_index("embedding_quantized", in[1]);
  Shape shape = in[1].shape;
  shape.push_back(in[0].shape[1]);
  return {{shape, DType::float32}};
}

const OpDef ops::embedding_quantized = {
    "embedding_quantized", infer, no_grad, saves(), saves(), {.meets = can_meet(DataError::index)}};

}  // namespace plmcore
