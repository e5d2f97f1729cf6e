#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_normalisation(nb::module_& m) {
  m.def("layer_norm", &layer_norm, "x"_a, "gamma"_a, "beta"_a, "eps"_a = 1e-5, NoGil(),
        "(x - mean) / sqrt(var + eps) * gamma + beta over the last axis. x [..., C]; gamma, beta [C].");
  m.def("rms_norm", &rms_norm, "x"_a, "gamma"_a, "eps"_a = 1e-6, NoGil(),
        "x / sqrt(mean(x^2) + eps) * gamma over the last axis. x [..., C]; gamma [C].");
  m.def("residual_layer_norm", &residual_layer_norm, "x"_a, "residual"_a, "gamma"_a, "beta"_a, "eps"_a = 1e-5,
        NoGil(),
        "s = x + residual, y = layer_norm(s, gamma, beta). Returns (y, s). x, residual [..., C]; gamma, beta "
        "[C].");
}

}  // namespace plmcore::bindings
