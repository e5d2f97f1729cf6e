#include "plmcore/ops.h"

namespace plmcore {

Activation activation_from_name(std::string_view name) {
  static constexpr const char* names[] = {"none", "relu", "gelu", "gelu_tanh", "tanh", "sigmoid", "silu"};
  for (int i = 0; i < 7; ++i)
    if (name == names[i]) return static_cast<Activation>(i);
  fail<ValueError>("the activation must be one of none, relu, gelu, gelu_tanh, tanh, sigmoid, silu, got '", name, "'");
}

}  // namespace plmcore
