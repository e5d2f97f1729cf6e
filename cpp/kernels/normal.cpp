// Box-Muller: two words u, v give sqrt(-2 ln u) * (cos 2 pi v, sin 2 pi v). The words of a group come in
// vectors, the first and the second half of the words of a block are the two pairs.
#include "kernels/math.h"
#include "kernels/random.h"

namespace plmcore::PLM_ISA {

// cos and sin of 2 pi v for v in [0, 1): v is brought to [-1/8, 1/8] of a turn around its nearest quarter.
PLM_INLINE void turn(vf v, vf& cosine, vf& sine) {
  const vi quarter = __builtin_convertvector(v * 4.f + 0.5f, vi);
  const vf t = (v - __builtin_convertvector(quarter, vf) * 0.25f) * 6.28318530717958648f, s = t * t;
  vf c = splat(2.443315711809948e-5f), d = splat(-1.9515295891e-4f);
  c = c * s - 1.388731625493765e-3f;
  c = c * s + 4.166664568298827e-2f;
  c = c * s * s - 0.5f * s + 1.f;
  d = d * s + 8.3321608736e-3f;
  d = d * s - 1.6666654611e-1f;
  d = d * s * t + t;
  const vi odd = (quarter & 1) != 0, flip_cos = ((quarter + 1) & 2) != 0, flip_sin = (quarter & 2) != 0;
  const vf a = odd ? d : c, b = odd ? c : d;
  cosine = flip_cos ? -a : a;
  sine = flip_sin ? -b : b;
}

PLM_KERNEL(normal) {
  const double mean = args.f("mean"), std = args.f("std");
  for_float("normal", args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* y = args.out[0].as<T>();
    const auto place = [&](int64_t i, int64_t end, vf z) __attribute__((always_inline)) {
      if constexpr (std::is_same_v<T, double>)
        for (int k = 0; k < kF && i + k < end; ++k) y[i + k] = mean + std * z[k];
      else store_until(y, i, end, z * static_cast<float>(std) + static_cast<float>(mean));
    };
    for_chunks(args.out[0].numel, kGrain, [&](int64_t begin, int64_t end) {
      for_random<64>(args.in[0].as<int64_t>(), begin, end,
                     [&](const RandomWords& r, int64_t i) __attribute__((always_inline)) {
                       for (int w = 0; w < 4; w += 2) {
                         vf cosine, sine;
                         turn(uniform01(r.word[w + 1]), cosine, sine);
                         const vf radius =
                             sqrt(-2.f * log(uniform01(r.word[w]) + 0x1p-24f));  // of u in (0, 1]
                         place(i + 16 * w, end, radius * cosine);
                         place(i + 16 * (w + 1), end, radius * sine);
                       }
                     });
    });
  });
}

}  // namespace plmcore::PLM_ISA
