#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_arithmetic(nb::module_& m) {
  m.def("add", &add, "a"_a, "b"_a, NoGil(), "a + b, broadcasting.");
  m.def("sub", &sub, "a"_a, "b"_a, NoGil(), "a - b, broadcasting.");
  m.def("mul", &mul, "a"_a, "b"_a, NoGil(), "a * b, broadcasting.");
  m.def("div", static_cast<Tensor (*)(const Tensor&, const Tensor&)>(&div), "a"_a, "b"_a, NoGil(),
        "a / b, broadcasting; floats.");
  m.def("pow", static_cast<Tensor (*)(const Tensor&, const Tensor&)>(&pow), "a"_a, "b"_a, NoGil(),
        "a to the power b, broadcasting; floats.");
  m.def("maximum", &maximum, "a"_a, "b"_a, NoGil(),
        "The larger of a and b, broadcasting; NaN where either is NaN.");
  m.def("minimum", &minimum, "a"_a, "b"_a, NoGil(),
        "The smaller of a and b, broadcasting; NaN where either is NaN.");
  m.def("affine", &affine, "x"_a, "scale"_a = 1.0, "shift"_a = 0.0, NoGil(),
        "x * scale + shift with two numbers.");
  m.def("equal", &equal, "a"_a, "b"_a, NoGil(), "a == b as bool, broadcasting.");
  m.def("not_equal", &not_equal, "a"_a, "b"_a, NoGil(), "a != b as bool, broadcasting.");
  m.def("less", &less, "a"_a, "b"_a, NoGil(), "a < b as bool, broadcasting.");
  m.def("less_equal", &less_equal, "a"_a, "b"_a, NoGil(), "a <= b as bool, broadcasting.");
  m.def("greater", &greater, "a"_a, "b"_a, NoGil(), "a > b as bool, broadcasting.");
  m.def("greater_equal", &greater_equal, "a"_a, "b"_a, NoGil(), "a >= b as bool, broadcasting.");
  m.def("logical_and", &logical_and, "a"_a, "b"_a, NoGil(), "a and b, bool, broadcasting.");
  m.def("logical_or", &logical_or, "a"_a, "b"_a, NoGil(), "a or b, bool, broadcasting.");
  m.def("logical_not", &logical_not, "a"_a, NoGil(), "not a, bool.");
  m.def("where", &where, "condition"_a, "a"_a, "b"_a, NoGil(),
        "a where the bool condition holds, else b; the three broadcast.");
  m.def("masked_fill", &masked_fill, "x"_a, "mask"_a, "value"_a, NoGil(),
        "value where the bool mask holds, else x; the mask broadcasts to x.");
  m.def("sum_to", &sum_to, "x"_a, "shape"_a, NoGil(),
        "x summed over the axes along which `shape` would broadcast to it.");
  m.def("broadcast_to", &broadcast_to, "x"_a, "shape"_a, NoGil(),
        "x repeated along axes of size 1 and new leading axes.");
}

}  // namespace plmcore::bindings
