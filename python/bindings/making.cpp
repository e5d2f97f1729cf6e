#include "bindings/bindings.h"
#include "plmcore/random.h"

namespace plmcore::bindings {

void bind_making(nb::module_& m) {
  m.def(
      "full",
      [](Shape shape, double value, DType dtype, nb::handle device, Optional like) {
        return full(shape, value, dtype, &to_place(device, like));
      },
      "shape"_a, "value"_a, "dtype"_a = "float32", "device"_a = nb::none(), "like"_a = nb::none(),
      "Every element is `value`. like: a tensor on whose device it is made.");
  m.def(
      "arange",
      [](Dim start, Dim stop, DType dtype, nb::handle device, Optional like) {
        return arange(start, stop, dtype, &to_place(device, like));
      },
      "start"_a, "stop"_a, "dtype"_a = "int64", "device"_a = nb::none(), "like"_a = nb::none(),
      "start, start + 1, ..., stop - 1. like: a tensor on whose device it is made.");
  m.def("one_hot", &one_hot, "ids"_a, "size"_a, "dtype"_a = "float32", NoGil(),
        "1 at ids[...] of a new last axis of `size`, 0 elsewhere.");
  m.def("cast", &cast, "x"_a, "dtype"_a, NoGil(),
        "x in another dtype. Float to integer truncates; anything to bool is x != 0.");
  m.def("rng_advance", &rng_advance, "state"_a, "by"_a, NoGil(),
        "(seed, offset) -> (seed, offset + by). state int64 [2].");
  m.def("copy", &copy, "x"_a, NoGil(), "x in new memory.");
}

}  // namespace plmcore::bindings
