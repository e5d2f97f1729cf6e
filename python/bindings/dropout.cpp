#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_dropout(nb::module_& m) {
  m.def("dropout", &dropout, "x"_a, "p"_a, "locked"_a = false, NoGil(),
        "x / (1 - p) where kept, 0 with probability p. locked: one mask over all positions of axis 1 of x "
        "[B, T, C].");
  m.def(
      "uniform",
      [](const Shape& shape, double low, double high, DType dtype, nb::handle device, Optional like) {
        Device& place = to_place(device, like);
        const ReleaseGil nogil;
        return uniform(shape, low, high, dtype, &place);
      },
      "shape"_a, "low"_a = 0.0, "high"_a = 1.0, "dtype"_a = "float32", "device"_a = nb::none(),
      "like"_a = nb::none(), "Uniform random numbers in [low, high).");
  m.def(
      "normal",
      [](const Shape& shape, double mean, double std, DType dtype, nb::handle device, Optional like) {
        Device& place = to_place(device, like);
        const ReleaseGil nogil;
        return normal(shape, mean, std, dtype, &place);
      },
      "shape"_a, "mean"_a = 0.0, "std"_a = 1.0, "dtype"_a = "float32", "device"_a = nb::none(),
      "like"_a = nb::none(), "Normal random numbers.");
}

}  // namespace plmcore::bindings
