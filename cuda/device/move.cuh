// Moving elements without looking at them: y[to] = x[from] over merged axes (device/axes.h), in 16-byte packs
// where the innermost axis is whole packs on both sides. Traffic: one read and one write.
#pragma once

#include "device/axes.h"
#include "device/grid.h"
#include "device/kernel.h"

namespace plmcore::cuda {

template <class T, int V>
__global__ void __launch_bounds__(kThreads)
    move_packs(const T* __restrict__ from, T* __restrict__ to, int64_t packs, Axes<2> axes) {
  for (int64_t p = first_of_thread(); p < packs; p += threads_of_grid()) {
    int64_t at[2];
    axes.find(static_cast<uint32_t>(p), at);
    *reinterpret_cast<Pack<T, V>*>(to + at[1]) = *reinterpret_cast<const Pack<T, V>*>(from + at[0]);
  }
}

// The strides of `plan` are those of x and of y; the two offsets are in elements.
inline const char* move(const KernelArgs& args, const View& x, int64_t from, const View& y, int64_t to,
                        const Plan<2>& plan) {
  if (plan.count() == 0) return nullptr;
  return for_bytes(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return plan.in_parts([&](const Plan<2>& part, const int64_t (&start)[2]) {
      const T* source = x.as<T>() + from + start[0];
      T* target = y.as<T>() + to + start[1];
      const auto go = [&]<int V>(Constant<V>) {
        const int64_t packs = part.count() / V;
        return problem(launch<move_packs<T, V>>(grid_for(packs), dim3(kThreads), 0, stream_of(args), source,
                                                target, packs, part.template in_packs<2>(V)));
      };
      constexpr int V = kPack<T>;
      if (V > 1 && aligned(source, target) && part.has_packs(V)) return go(Constant<V>{});
      return go(Constant<1>{});
    });
  });
}
// `rows` rows of `length` elements.
inline const char* move_rows(const KernelArgs& args, int64_t rows, int64_t length, const View& x,
                             int64_t from, int64_t from_stride, const View& y, int64_t to,
                             int64_t to_stride) {
  Plan<2> plan;
  plan.add(length, {1, 1});
  plan.add(rows, {from_stride, to_stride});
  return move(args, x, from, y, to, plan);
}

}  // namespace plmcore::cuda
