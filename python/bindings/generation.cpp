#include <optional>

#include <nanobind/stl/optional.h>

#include "bindings/bindings.h"
#include "plmcore/generate.h"

namespace plmcore::bindings {

void bind_generation(nb::module_& m) {
  m.def("beam_step", &beam_step, "logits"_a, "scores"_a, "n"_a, NoGil(),
        "(scores [B, n], beams int64 [B, n], tokens int64 [B, n]): the n best of scores [B, K] + "
        "log_softmax(logits [B * K, V]), per batch row.");
  m.def("gather_beams", &gather_beams, "x"_a, "beams"_a, NoGil(),
        "y[b, j] = x[b, beams[b, j]]. x [B, K, ...]; beams int [B, n].");
  m.def("cache_append", &cache_append, "cache"_a, "rows"_a, "position"_a, NoGil(),
        "Writes rows [B, T, ...] into cache [B, P, ...] at a position of axis 1, in place.");
  m.def(
      "attend_cached",
      [](const Tensor& qkv, const Tensor& cache, Dim position, Optional lengths, Optional mask, Optional bias,
         std::optional<double> scale) {
        return attend_cached(qkv, cache, position,
                             {.lengths = lengths, .mask = mask, .bias = bias, .scale = scale.value_or(-1)});
      },
      "qkv"_a, "cache"_a, "position"_a, "lengths"_a = nb::none(), "mask"_a = nb::none(),
      "bias"_a = nb::none(), "scale"_a = nb::none(), NoGil(),
      "A step of decoding: keys and values of qkv [B, n, 3 H D] go to the slots of the cache [B, P, 2, H, D] "
      "from `position` on, and the\n"
      "tokens look at the cache as in `attention`. -> [B, n, H D]");
}

}  // namespace plmcore::bindings
