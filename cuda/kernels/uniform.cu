// Numbers in [low, high) of 24 random bits, the CPU's; a thread makes four, 16 elements apart.
#include "device/philox.cuh"

namespace plmcore::cuda {

template <class T>
__global__ void __launch_bounds__(kThreads)
    uniform_draw(Draw draw, T* __restrict__ y, int64_t n, Acc<T> low, Acc<T> width) {
  for_random(draw, n, [&](const Random4& r, int64_t i) {
#pragma unroll
    for (int w = 0; w < 4; ++w)
      if (i + 16 * w < n) y[i + 16 * w] = narrow<T>(uniform01(r.x[w]) * width + low);
  });
}

PLM_KERNEL(uniform) {
  const View& y = args.out[0];
  const double low = args.f("low"), width = args.f("high") - low;
  if (y.numel == 0) return nullptr;
  return for_float(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return problem(launch<uniform_draw<T>>(grid_for(blocks_for(y.numel)), dim3(kThreads), 0, stream_of(args),
                                           draw_of(args.in[0]), y.as<T>(), y.numel, static_cast<Acc<T>>(low),
                                           static_cast<Acc<T>>(width)));
  });
}

}  // namespace plmcore::cuda
