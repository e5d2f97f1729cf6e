#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_reductions(nb::module_& m) {
  m.def("sum", &sum, "x"_a, "axes"_a = nb::none(), "keepdims"_a = false, NoGil(),
        "The sum over some axes, or all; integers and bool add up in int64.");
  m.def("mean", &mean, "x"_a, "axes"_a = nb::none(), "keepdims"_a = false, NoGil(),
        "The mean over some axes, or all.");
  m.def("max", &max, "x"_a, "axis"_a = -1, "keepdims"_a = false, NoGil(),
        "The largest element along an axis; NaN where there is one.");
  m.def("min", &min, "x"_a, "axis"_a = -1, "keepdims"_a = false, NoGil(),
        "The smallest element along an axis; NaN where there is one.");
  m.def("argmax", &argmax, "x"_a, "axis"_a = -1, "keepdims"_a = false, NoGil(),
        "The position of the largest element along an axis, int64; the first of equals.");
  m.def("cumsum", &cumsum, "x"_a, "axis"_a = -1, NoGil(), "Running sums along an axis.");
  m.def("topk", &topk, "x"_a, "k"_a, NoGil(),
        "The k largest elements of the last axis, descending, and their positions: [..., n] -> [..., k] and "
        "int64 [..., k].");
  m.def("softmax", &softmax, "x"_a, NoGil(), "e^x / sum e^x over the last axis.");
  m.def("log_softmax", &log_softmax, "x"_a, NoGil(), "x - ln sum e^x over the last axis.");
}

}  // namespace plmcore::bindings
