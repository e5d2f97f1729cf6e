#include "plmcore/ops.h"

namespace plmcore {

// In the order of the enumeration.
static constexpr struct {
  std::string_view name;
  Tensor (*of)(const Tensor&);
} kTable[] = {
    {"none", [](const Tensor& x) { return x; }},
    {"relu", relu},
    {"gelu", [](const Tensor& x) { return gelu(x); }},
    {"gelu_tanh", [](const Tensor& x) { return gelu(x, true); }},
    {"tanh", tanh},
    {"sigmoid", sigmoid},
    {"silu", silu},
};
static_assert(std::size(kTable) == kActivations);

Activation activation_from_name(std::string_view name) {
  std::string names;
  for (int i = 0; i < kActivations; ++i) {
    if (name == kTable[i].name) return static_cast<Activation>(i);
    names.append(i ? ", " : "").append(kTable[i].name);
  }
  fail<ValueError>("the activation must be one of ", names, ", got '", name, "'");
}

Tensor activate(const Tensor& x, Activation activation) { return kTable[static_cast<int>(activation)].of(x); }

}  // namespace plmcore
