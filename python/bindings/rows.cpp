#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_rows(nb::module_& m) {
  m.def("pack_rows", &pack_rows, "x"_a, "mask"_a, NoGil(),
        "(rows [N, ...], index int64 [N]): the rows of x [B, T, ...] where mask bool [B, T] is true, and "
        "their numbers b * T + t.");
  m.def("unpack_rows", &unpack_rows, "rows"_a, "index"_a, "B"_a, "T"_a, NoGil(),
        "The reverse of pack_rows: rows [N, ...] in their places in [B, T, ...], zeros elsewhere.");
  m.def("select_labelled", &select_labelled, "x"_a, "labels"_a, "ignore_index"_a = -100, NoGil(),
        "(x [N, ...], labels [N], index int64 [N]): the rows of x [B, T, ...] and labels [B, T] whose label "
        "is not ignore_index.");
}

}  // namespace plmcore::bindings
