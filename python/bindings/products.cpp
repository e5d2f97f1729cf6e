#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_products(nb::module_& m) {
  m.def("matmul", &matmul, "a"_a, "b"_a, "transpose_a"_a = false, "transpose_b"_a = false, NoGil(),
        "op(a) op(b) over the last two axes, leading axes broadcast. a [..., M, K], b [..., K, N].");
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, Optional bias, std::string_view activation) {
        return linear(x, weight, bias, activation_from_name(activation));
      },
      "x"_a, "weight"_a, "bias"_a = nb::none(), "activation"_a = "none", NoGil(),
      "activation(x W^T + bias). x [..., K]; weight [N, K]; bias [N].");
  m.def("pack_weight", &pack_weight, "weight"_a, NoGil(),
        "A weight [N, K] in the layout of this processor's inner loop, for linear_packed.");
  m.def(
      "linear_packed",
      [](const Tensor& x, const Tensor& packed, Optional bias, Dim N, std::string_view activation) {
        return linear_packed(x, packed, bias, N, activation_from_name(activation));
      },
      "x"_a, "packed"_a, "bias"_a = nb::none(), nb::kw_only(), "N"_a, "activation"_a = "none", NoGil(),
      "linear with a weight [N, K] that pack_weight has laid out. x [..., K] -> [..., N]; no gradient.");
  m.def(
      "linear_quantized",
      [](const Tensor& x, const Tensor& weight, Optional scale, Optional bias, std::string_view activation,
         int bits) {
        return linear_quantized(x, weight, scale, bias, activation_from_name(activation), bits);
      },
      "x"_a, "weight"_a, "scale"_a = nb::none(), "bias"_a = nb::none(), "activation"_a = "none",
      "bits"_a = 13, NoGil(),
      "linear with a weight int8 [N, K] and a scale [N], or bfloat16 [N, K]; the rest float32. x [..., K] -> "
      "[..., N]; no gradient. bits: of x's rounded values beside int8, 13 or 8.");
}

}  // namespace plmcore::bindings
