// Elements that an index tensor picks along an axis, and their gradients.
//   take   y[o, j, i] = x[o, index, i]        a thread an element of y, or 16 bytes where rows are whole
//   packs add    sum[o, index, i] += rows[o, j, i]  a thread owns (o, i) and walks j in order: the CPU's bits
// x and sum are [outer, n, inner], y and rows [outer, m, inner]. An index outside of [0, n) is noted
// (device/fault.cuh); take then writes 0, add nothing.
#pragma once

#include <type_traits>

#include "device/arithmetic.cuh"
#include "device/fault.cuh"

namespace plmcore::cuda {

enum class IndexOf { element, run, position };  // [outer, m, inner], [outer, m] or [m]

struct Indexed {
  int64_t outer, n, m, inner;
};
template <IndexOf kind>
__device__ __forceinline__ int64_t index_at(const Indexed& s, int64_t o, int64_t j, int64_t i) {
  if constexpr (kind == IndexOf::position) return j;
  else return kind == IndexOf::run ? o * s.m + j : (o * s.m + j) * s.inner + i;
}

template <IndexOf kind, class I, class T>
__global__ void __launch_bounds__(kThreads)
    take_indexed(const T* __restrict__ x, const I* __restrict__ index, T* __restrict__ y, int64_t count,
                 Indexed sizes, Divisor inner, Divisor positions, unsigned long long* bad_position) {
  for (int64_t k = first_of_thread(); k < count; k += threads_of_grid()) {
    const uint32_t row = inner.divide(static_cast<uint32_t>(k)), o = positions.divide(row);
    const int64_t i = static_cast<uint32_t>(k) - row * inner.size, j = row - o * positions.size;
    const int64_t at = index_at<kind>(sizes, o, j, i);
    const I picked = index[at];
    const bool good = within(picked, sizes.n);
    if (!good) note_bad(bad_position, at);
    y[k] = good ? x[(o * sizes.n + picked) * sizes.inner + i] : T{};
  }
}
template <IndexOf kind, class I, class T, class A>
__global__ void __launch_bounds__(kThreads)
    add_indexed(A* __restrict__ sum, const I* __restrict__ index, const T* __restrict__ rows, Indexed sizes,
                unsigned long long* bad_position) {
  for (int64_t k = first_of_thread(); k < sizes.outer * sizes.inner; k += threads_of_grid()) {
    const int64_t o = k / sizes.inner, i = k % sizes.inner;
    for (int64_t j = 0; j < sizes.m; ++j) {
      const int64_t at = index_at<kind>(sizes, o, j, i);
      const I picked = index[at];
      if (!within(picked, sizes.n)) {
        note_bad(bad_position, at);
        continue;
      }
      A& to = sum[(o * sizes.n + picked) * sizes.inner + i];
      to = static_cast<A>(unsigned_of(to) +
                          unsigned_of(static_cast<A>(widen(rows[(o * sizes.m + j) * sizes.inner + i]))));
    }
  }
}

template <IndexOf kind>
const char* take(const KernelArgs& args, ops::Id op, const View& x, const View& index, const View& y,
                 Indexed sizes) {
  if (index.numel == 0 || y.numel == 0) return nullptr;
  const int64_t pack = 16 / static_cast<int64_t>(size_of(x.dtype));
  const bool packs =
      kind != IndexOf::element && sizes.inner % pack == 0 && aligned(x.as<char>(), y.as<char>());
  const int64_t count = packs ? y.numel / pack : y.numel;
  if (count >> 31) return "2^31 elements and more are not on this device yet";
  return for_index(index.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    const auto go = [&](auto type) {
      using T = typename decltype(type)::type;
      return problem(launch<take_indexed<kind, I, T>>(
          grid_for(count), dim3(kThreads), 0, stream_of(args), x.as<T>(), index.as<I>(), y.as<T>(), count,
          sizes, Divisor(sizes.inner), Divisor(sizes.m), gpu_of(args).bad_position));
    };
    if (packs) sizes.inner /= pack;
    const char* why = packs ? go(Type<Pack<uint32_t, 4>>{}) : for_bytes(x.dtype, go);
    return why ? why : report_faults<I>(args, op, DataError::index, index, sizes.n);
  });
}

// A float32 copy of output 0 for the half types.
inline Workspace float_sums(const KernelArgs& args) {
  const View& y = args.out[0];
  return {.shared = size_of(y.dtype) == 2 ? static_cast<size_t>(y.numel) * sizeof(float) : 0};
}

// Output 0 = start, or zeros without one, plus the rows; needs float_sums.
template <IndexOf kind>
const char* add(const KernelArgs& args, ops::Id op, const View* start, const View& index, const View& rows,
                Indexed sizes) {
  const View& y = args.out[0];
  if (y.numel == 0) return nullptr;
  const auto go = [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    View sums = y;
    if (!std::is_same_v<T, A>) {
      sums.data = args.shared;
      sums.dtype = DType::float32;
    }
    const cudaStream_t stream = stream_of(args);
    const char* why =
        start ? elementwise_equal<A, T>(args, sums, start, Unchanged{})
              : problem(cudaMemsetAsync(sums.data, 0, static_cast<size_t>(y.numel) * sizeof(A), stream));
    if (why) return why;
    if (rows.numel) {
      why = for_index(index.dtype, [&](auto index_type) {
        using I = typename decltype(index_type)::type;
        const char* failed = problem(launch<add_indexed<kind, I, T, A>>(
            grid_for(sizes.outer * sizes.inner), dim3(kThreads), 0, stream, sums.as<A>(), index.as<I>(),
            rows.as<T>(), sizes, gpu_of(args).bad_position));
        return failed ? failed : report_faults<I>(args, op, DataError::index, index, sizes.n);
      });
      if (why) return why;
    }
    if constexpr (!std::is_same_v<T, A>) return elementwise_equal<T, A>(args, y, &sums, Unchanged{});
    else return why;
  };
  return is_index(y.dtype) ? for_index(y.dtype, go) : for_float(y.dtype, go);
}

}  // namespace plmcore::cuda
