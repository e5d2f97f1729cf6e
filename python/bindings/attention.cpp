#include <optional>

#include <nanobind/stl/optional.h>

#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_attention(nb::module_& m) {
  m.def(
      "attention",
      [](const Tensor& q, Optional k, Optional v, Optional lengths, Optional mask, Optional bias,
         Optional offsets, bool causal, int64_t band, int64_t stride, Optional prefix, Optional start,
         std::optional<double> scale, double dropout, bool weights) -> nb::object {
        Tensors out;
        {
          const ReleaseGil nogil;
          out = attention(q, k, v,
                          {lengths, mask, bias, offsets, causal, band, stride, prefix, start,
                           scale.value_or(-1), dropout, weights});
        }
        return weights ? nb::object(from_tensors(out)) : from_tensor(out[0]);
      },
      "q"_a, "k"_a = nb::none(), "v"_a = nb::none(), "lengths"_a = nb::none(), "mask"_a = nb::none(),
      "bias"_a = nb::none(), "offsets"_a = nb::none(), "causal"_a = false, "band"_a = 0, "stride"_a = 0,
      "prefix"_a = nb::none(), "start"_a = nb::none(), "scale"_a = nb::none(), "dropout"_a = 0.0,
      "weights"_a = false,
      "softmax(scale q k^T + bias) v over the keys a query may see. q [B, T, H, D]; k, v [B, S, H, D] -> [B, "
      "T, H, D].\n"
      "Packed: q = qkv [B, T, 3, H, D] alone, or k = kv [B, S, 2, H, D] without v. With offsets [B + 1]: "
      "rows [N, ...] of B sequences.\n"
      "lengths [B] keys of each sequence; mask bool [B|1, H|1, T|1, S], true may be seen; bias [B|1, H|1, T, "
      "S].\n"
      "causal: query i is at key position start[b] + i (S - T without start) and sees the keys up to there; "
      "of these the last\n"
      "`band`, each `stride`-th back, and the first prefix[b]. scale None: 1 / sqrt(D). weights: also "
      "returns them, [B, H, T, S].");
  m.def("rel_shift", &rel_shift, "x"_a, "S"_a, NoGil(),
        "y[..., i, j] = x[..., i, j + T - 1 - i], 0 beyond the last column. x [..., T, L] -> [..., T, S].");
}

}  // namespace plmcore::bindings
