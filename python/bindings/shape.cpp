#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_shape(nb::module_& m) {
  m.def("reshape", &reshape, "x"_a, "shape"_a, NoGil(),
        "The same elements in the same order under another shape; shares memory.");
  m.def("narrow", &narrow, "x"_a, "start"_a, "length"_a, NoGil(),
        "x[start : start + length] along the first axis; shares memory.");
  m.def("transpose", &transpose, "x"_a, "order"_a, NoGil(), "The axes of x in another order.");
  m.def("concat", &concat, "tensors"_a, "axis"_a = 0, NoGil(),
        "The tensors one after the other along an axis.");
  m.def("split", &split, "x"_a, "sizes"_a, "axis"_a = 0, NoGil(),
        "Pieces of the given sizes along an axis; along the first they share memory.");
  m.def("slice", &slice, "x"_a, "axis"_a, "start"_a, "stop"_a, "step"_a = 1, NoGil(),
        "Every step-th element of [start, stop) along an axis; a negative step begins at the end of the "
        "range.");
  m.def("pad", &pad, "x"_a, "before"_a, "after"_a, "value"_a = 0.0, NoGil(),
        "x with before[a] and after[a] elements of `value` around it along each axis a.");
  m.def("gather", &gather, "x"_a, "index"_a, "axis"_a, NoGil(),
        "x at the index along an axis, like numpy.take_along_axis; index has x's sizes but there.");
  m.def("index_select", &index_select, "x"_a, "index"_a, "axis"_a = 0, NoGil(),
        "Slices of x by number along an axis: [..., n, ...] and an index of shape S give [..., S, ...].");
  m.def("scatter_add", &scatter_add, "x"_a, "index"_a, "updates"_a, NoGil(),
        "x [n, ...] with updates[j] added to its row index[j]; repeats add up.");
}

}  // namespace plmcore::bindings
