#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_generation(nb::module_& m) {
  m.def("beam_step", &beam_step, "logits"_a, "scores"_a, "n"_a, NoGil(),
        "(scores [B, n], beams int64 [B, n], tokens int64 [B, n]): the n best of scores [B, K] + log_softmax(logits [B * K, V]), per batch "
        "row.");
  m.def("gather_beams", &gather_beams, "x"_a, "beams"_a, NoGil(), "y[b, j] = x[b, beams[b, j]]. x [B, K, ...]; beams int [B, n].");
  m.def("cache_append", &cache_append, "cache"_a, "rows"_a, "position"_a, NoGil(),
        "Writes rows [B, T, ...] into cache [B, P, ...] at a position of axis 1, in place.");
}

}  // namespace plmcore::bindings
