#include "kernels/random.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(uniform) {
  const double low = args.f("low"), width = args.f("high") - low;
  for_float("uniform", args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* y = args.out[0].as<T>();
    for_chunks(args.out[0].numel, kGrain, [&](int64_t begin, int64_t end) {
      for_random<64>(args.in[0].as<int64_t>(), begin, end,
                     [&](const RandomWords& r, int64_t i) __attribute__((always_inline)) {
                       for (int w = 0; w < 4; ++w, i += 16) {
                         const vf u = uniform01(r.word[w]);
                         if constexpr (std::is_same_v<T, double>)
                           for (int k = 0; k < kF && i + k < end; ++k) y[i + k] = low + u[k] * width;
                         else store_until(y, i, end, u * static_cast<float>(width) + static_cast<float>(low));
                       }
                     });
    });
  });
}

}  // namespace plmcore::PLM_ISA
