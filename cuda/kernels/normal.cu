// Box-Muller: two words u, v give sqrt(-2 ln u) * (cos 2 pi v, sin 2 pi v). The words are the CPU's, of a
// block the first and the second half are the two pairs; a thread makes four numbers, 16 elements apart.
#include "device/philox.cuh"

namespace plmcore::cuda {

inline constexpr float kTwoPi = 6.28318530717958648f;

template <class T>
__global__ void __launch_bounds__(kThreads)
    normal_draw(Draw draw, T* __restrict__ y, int64_t n, Acc<T> mean, Acc<T> width) {
  for_random(draw, n, [&](const Random4& r, int64_t i) {
#pragma unroll
    for (int w = 0; w < 4; w += 2) {
      const float radius = std::sqrt(-2.f * std::log(uniform01(r.x[w]) + 0x1p-24f)),  // of u in (0, 1]
          angle = kTwoPi * uniform01(r.x[w + 1]);
      if (i + 16 * w < n) y[i + 16 * w] = narrow<T>(radius * std::cos(angle) * width + mean);
      if (i + 16 * w + 16 < n) y[i + 16 * w + 16] = narrow<T>(radius * std::sin(angle) * width + mean);
    }
  });
}

PLM_KERNEL(normal) {
  const View& y = args.out[0];
  if (y.numel == 0) return nullptr;
  return for_float(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return problem(launch<normal_draw<T>>(
        grid_for(blocks_for(y.numel)), dim3(kThreads), 0, stream_of(args), draw_of(args.in[0]), y.as<T>(),
        y.numel, static_cast<Acc<T>>(args.f("mean")), static_cast<Acc<T>>(args.f("std"))));
  });
}

}  // namespace plmcore::cuda
