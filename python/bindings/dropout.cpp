#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_dropout(nb::module_& m) {
  m.def("dropout", &dropout, "x"_a, "p"_a, "locked"_a = false, NoGil(),
        "x / (1 - p) where kept, 0 with probability p. locked: one mask over all positions of axis 1 of x "
        "[B, T, C].");
  m.def(
      "uniform",
      [](const Shape& shape, double low, double high, DType dtype) {
        return uniform(shape, low, high, dtype);
      },
      "shape"_a, "low"_a = 0.0, "high"_a = 1.0, "dtype"_a = "float32", NoGil(),
      "Uniform random numbers in [low, high).");
  m.def(
      "normal",
      [](const Shape& shape, double mean, double std, DType dtype) {
        return normal(shape, mean, std, dtype);
      },
      "shape"_a, "mean"_a = 0.0, "std"_a = 1.0, "dtype"_a = "float32", NoGil(), "Normal random numbers.");
}

}  // namespace plmcore::bindings
