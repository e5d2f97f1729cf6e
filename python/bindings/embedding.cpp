#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_embedding(nb::module_& m) {
  m.def("embedding", &embedding, "weight"_a, "ids"_a, "sparse"_a = false, NoGil(),
        "weight[ids]. weight [V, C]; ids int [...] -> [..., C]. sparse: the gradient holds only the rows "
        "that occur.");
  m.def(
      "embedding_quantized",
      [](const Tensor& weight, const Tensor& ids, Optional scale) {
        return embedding_quantized(weight, ids, scale);
      },
      "weight"_a, "ids"_a, "scale"_a = nb::none(), NoGil(),
      "weight[ids] as float32, of a weight int8 [V, C] with a scale [V], or bfloat16 [V, C]; no gradient.");
  m.def("merge_rows", &merge_rows, "a"_a, "b"_a, NoGil(), "The sum of two row-sparse tensors.");
  m.def("add_rows", &add_rows, "dense"_a, "sparse"_a, NoGil(), "dense + a row-sparse tensor.");
  m.def("to_dense", &to_dense, "sparse"_a, NoGil(), "The dense form of a row-sparse tensor.");
}

}  // namespace plmcore::bindings
