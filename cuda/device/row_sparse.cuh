// The rows of a row-sparse gradient: sorted and unique, inside of the table. One that is not is noted, and
// left out.
#pragma once

#include "device/arithmetic.cuh"
#include "device/fault.cuh"

namespace plmcore::cuda {

struct GivenRows {
  const int64_t* rows;
  int64_t n, limit;  // there are n of them, below `limit`
  unsigned long long* bad_position;

  __device__ __forceinline__ bool good(int64_t k) const {
    return within(rows[k], limit) && (k == 0 || rows[k] > rows[k - 1]);
  }
  // The first k with rows[k] >= row.
  __device__ __forceinline__ int64_t first_from(int64_t row) const {
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t mid = (low + high) / 2;
      if (rows[mid] < row) low = mid + 1;
      else high = mid;
    }
    return low;
  }
};
inline GivenRows given_rows(const KernelArgs& args, const View& rows, int64_t limit) {
  return {rows.as<int64_t>(), rows.numel, limit, gpu_of(args).bad_position};
}

// Grid and block of one, after a check of the rows.
template <class Unused = void>
__global__ void report_bad_row(GivenRows rows, Fault fault, Fault* word) {
  const unsigned long long at = *rows.bad_position;
  if (at == kNoPosition) return;
  const bool outside = !within(rows.rows[at], rows.limit);
  fault.error = outside ? DataError::row : DataError::row_order;
  fault.limit = outside ? rows.limit : rows.rows[at - 1];
  write_fault(rows.bad_position, rows.rows[at], fault, word);
}
template <class Unused = void>
__global__ void __launch_bounds__(kThreads) check_row_order(GivenRows rows) {
  for (int64_t k = first_of_thread(); k < rows.n; k += threads_of_grid())
    if (!rows.good(k)) note_bad(rows.bad_position, k);
}
inline const char* check_rows(const KernelArgs& args, ops::Id op, const View& rows, int64_t limit) {
  if (rows.numel == 0) return nullptr;
  const GivenRows given = given_rows(args, rows, limit);
  const Gpu& gpu = gpu_of(args);
  cudaError_t error = launch<check_row_order<>>(grid_for(rows.numel), dim3(kThreads), 0, gpu.stream, given);
  if (!error)
    error = launch<report_bad_row<>>(dim3(1), dim3(1), 0, gpu.stream, given,
                                     fault_of(op, DataError::row, rows, limit), gpu.fault);
  return problem(error);
}

// y[rows[k]] = values[k], added to what is there with kAdd; a thread a pack, `width` packs a row.
template <class T, int V, bool kAdd>
__global__ void __launch_bounds__(kThreads)
    place_given_rows(GivenRows rows, const T* __restrict__ values, T* y, int64_t packs, Divisor width) {
  for (int64_t p = first_of_thread(); p < packs; p += threads_of_grid()) {
    const uint32_t k = width.divide(static_cast<uint32_t>(p)), c = static_cast<uint32_t>(p) - k * width.size;
    if (!rows.good(k)) continue;
    T* to = y + (rows.rows[k] * width.size + c) * V;
    const auto from = *reinterpret_cast<const Pack<T, V>*>(values + p * V);
    if constexpr (kAdd) {
      auto sum = *reinterpret_cast<const Pack<T, V>*>(to);
#pragma unroll
      for (int j = 0; j < V; ++j) sum.at[j] = narrow<T>(widen(sum.at[j]) + widen(from.at[j]));
      *reinterpret_cast<Pack<T, V>*>(to) = sum;
    } else *reinterpret_cast<Pack<T, V>*>(to) = from;
  }
}
template <class T, bool kAdd>
const char* place_rows(const KernelArgs& args, ops::Id op, const View& rows, const View& values,
                       const View& y, int64_t limit, int64_t width) {
  if (rows.numel == 0) return nullptr;
  if (values.numel >> 31) return "2^31 elements and more are not on this device yet";
  if (values.numel) {
    const auto go = [&]<int V>(Constant<V>) {
      const int64_t packs = values.numel / V;
      return problem(launch<place_given_rows<T, V, kAdd>>(grid_for(packs), dim3(kThreads), 0, stream_of(args),
                                                          given_rows(args, rows, limit), values.as<T>(),
                                                          y.as<T>(), packs, Divisor(width / V)));
    };
    constexpr int V = kPack<T>;
    const bool packs = V > 1 && width % V == 0 && aligned(values.as<T>(), y.as<T>());
    if (const char* why = packs ? go(Constant<V>{}) : go(Constant<1>{})) return why;
  }
  return check_rows(args, op, rows, limit);
}
// Zeros under them.
inline const char* place_rows_in_zeros(const KernelArgs& args, ops::Id op, const View& rows,
                                       const View& values, const View& y, int64_t limit, int64_t width) {
  if (y.numel)
    if (const char* why = problem(
            cudaMemsetAsync(y.data, 0, static_cast<size_t>(y.numel) * size_of(y.dtype), stream_of(args))))
      return why;
  return for_bytes(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return place_rows<T, false>(args, op, rows, values, y, limit, width);
  });
}

}  // namespace plmcore::cuda
