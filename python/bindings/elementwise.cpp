#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_elementwise(nb::module_& m) {
  using Unary = Tensor (*)(const Tensor&);  // the C library has functions of the same names
  m.def("exp", static_cast<Unary>(&exp), "x"_a, NoGil(), "e^x.");
  m.def("log", static_cast<Unary>(&log), "x"_a, NoGil(), "ln x; -inf at 0, NaN below.");
  m.def("sqrt", static_cast<Unary>(&sqrt), "x"_a, NoGil(), "The square root of x.");
  m.def("rsqrt", static_cast<Unary>(&rsqrt), "x"_a, NoGil(), "1 / sqrt(x).");
  m.def("abs", static_cast<Unary>(&abs), "x"_a, NoGil(), "|x|.");
  m.def("tanh", static_cast<Unary>(&tanh), "x"_a, NoGil(), "tanh x.");
  m.def("sigmoid", static_cast<Unary>(&sigmoid), "x"_a, NoGil(), "1 / (1 + e^-x).");
  m.def("relu", static_cast<Unary>(&relu), "x"_a, NoGil(), "max(x, 0).");
  m.def("gelu", &gelu, "x"_a, "tanh_form"_a = false, NoGil(),
        "x P(x) with the normal distribution function P, or its tanh form.");
  m.def("silu", static_cast<Unary>(&silu), "x"_a, NoGil(), "x sigmoid(x).");
}

}  // namespace plmcore::bindings
