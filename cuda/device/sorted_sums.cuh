// Sums of the rows of `values` [n, C] that share an index, without atomics: the positions are sorted by row
// (device/sort.cuh) and cut into pieces of fixed length. A block sums the runs of one piece; a run that lies
// in one piece is done, of the others the parts are added in order. The bits depend on the index alone.
// Traffic: one read of values, one write of each row that occurs.
#pragma once

#include "device/arithmetic.cuh"
#include "device/sort.cuh"

namespace plmcore::cuda {

inline constexpr int64_t kPiece = 32;      // positions
inline constexpr int kSumThreads = 128;    // columns, or packs of them, of a block

struct SortedRows {
  const uint64_t* keys;
  int64_t n, rows;

  __device__ __forceinline__ int64_t row(int64_t k) const { return static_cast<int64_t>(keys[k] >> 32); }
  __device__ __forceinline__ int64_t position(int64_t k) const {
    return static_cast<int64_t>(keys[k] & 0xffffffffu);
  }
  __device__ __forceinline__ int64_t end_of(int64_t piece) const {
    return (piece + 1) * kPiece < n ? (piece + 1) * kPiece : n;
  }
  __device__ __forceinline__ bool begins(int64_t k) const { return k == 0 || row(k - 1) != row(k); }
  // Whether the run of `row` is over before k.
  __device__ __forceinline__ bool over(int64_t k, int64_t of) const { return k == n || row(k) != of; }
};

// Where sums go. Dense: rows of y, beside those of `start` where there is one.
template <class T>
struct DenseRows {
  T* y;
  const T* start;
  int64_t C;

  template <int V>
  __device__ __forceinline__ void put(int64_t row, int64_t, int64_t column, Acc<T> (&sum)[V]) const {
    using A = Acc<T>;
    if (start) {
      A before[V];
      load<V>(start + row * C + column, before);
#pragma unroll
      for (int j = 0; j < V; ++j) sum[j] = static_cast<A>(unsigned_of(before[j]) + unsigned_of(sum[j]));
    }
    store<V>(y + row * C + column, sum);
  }
};
// By the number of the run: `first` has the positions where the `runs` runs begin.
template <class T>
struct RunRows {
  T* y;
  const int64_t* first;
  int64_t runs, C;

  template <int V>
  __device__ __forceinline__ void put(int64_t, int64_t begin, int64_t column, Acc<T> (&sum)[V]) const {
    int64_t low = 0, high = runs;
    while (low < high) {
      const int64_t mid = (low + high) / 2;
      if (first[mid] < begin) low = mid + 1;
      else high = mid;
    }
    if (low < runs) store<V>(y + low * C + column, sum);
  }
};

__device__ __forceinline__ int64_t column_of_thread(int V) {
  return (static_cast<int64_t>(blockIdx.y) * kSumThreads + threadIdx.x) * V;
}

// grid (pieces, columns), block 128; part [pieces][2][C]: of a run that began before, and of one that goes on
template <class T, int V, class Rows>
__global__ void __launch_bounds__(kSumThreads)
    sum_sorted_pieces(SortedRows sorted, const T* __restrict__ values, int64_t C, Rows to,
                      Acc<T>* __restrict__ part) {
  using A = Acc<T>;
  const int64_t piece = blockIdx.x, begin = piece * kPiece, end = sorted.end_of(piece),
                column = column_of_thread(V);
  if (column >= C) return;  // no barrier follows
  for (int64_t k = begin; k < end && sorted.row(k) < sorted.rows;) {
    const int64_t first = k, row = sorted.row(k);
    A sum[V] = {};
    for (; k < end && sorted.row(k) == row; ++k) {
      A v[V];
      load<V>(values + sorted.position(k) * C + column, v);
#pragma unroll
      for (int j = 0; j < V; ++j) sum[j] = static_cast<A>(unsigned_of(sum[j]) + unsigned_of(v[j]));
    }
    if (sorted.begins(first) && sorted.over(k, row)) to.put(row, first, column, sum);
    else {
#pragma unroll
      for (int j = 0; j < V; ++j) part[(piece * 2 + (first > begin)) * C + column + j] = sum[j];
    }
  }
}
// The run that begins in a piece and goes on behind it: its parts in order.
template <class T, int V, class Rows>
__global__ void __launch_bounds__(kSumThreads)
    join_sorted_pieces(SortedRows sorted, int64_t C, Rows to, const Acc<T>* __restrict__ part) {
  using A = Acc<T>;
  int64_t piece = blockIdx.x, k = sorted.end_of(piece);
  const int64_t begin = piece * kPiece, row = sorted.row(k - 1), column = column_of_thread(V);
  if (column >= C || row >= sorted.rows || sorted.over(k, row)) return;
  int64_t first = k - 1;
  while (first > begin && sorted.row(first - 1) == row) --first;
  if (!sorted.begins(first)) return;
  const A* own = part + (piece * 2 + (first > begin)) * C + column;
  A sum[V];
#pragma unroll
  for (int j = 0; j < V; ++j) sum[j] = own[j];
  while (!sorted.over(k, row)) {
    k = sorted.end_of(++piece);
    const A* next = part + piece * 2 * C + column;
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] = static_cast<A>(unsigned_of(sum[j]) + unsigned_of(next[j]));
    if (sorted.row(k - 1) != row) break;
  }
  to.put(row, first, column, sum);
}

inline int64_t sum_pieces(int64_t n) { return (n + kPiece - 1) / kPiece; }
// Beside the sort; sums of at most 8 bytes.
inline size_t sorted_sums_bytes(int64_t n, int64_t C, DType dtype) {
  return static_cast<size_t>(sum_pieces(n) * 2 * C) * (size_of(dtype) == 8 ? 8 : 4);
}

template <class T, class Rows>
const char* sum_sorted(const KernelArgs& args, const SortedRows& sorted, const T* values, int64_t C,
                       const Rows& to, bool packs, void* space) {
  const auto go = [&]<int V>(Constant<V>) {
    auto* part = static_cast<Acc<T>*>(space);
    const int64_t columns = (C / V + kSumThreads - 1) / kSumThreads;
    if (columns > 65535) return "rows of 2^23 elements and more are not on this device yet";
    const dim3 grid(static_cast<unsigned>(sum_pieces(sorted.n)), static_cast<unsigned>(columns)),
        block(kSumThreads);
    const cudaStream_t stream = stream_of(args);
    cudaError_t error =
        launch<sum_sorted_pieces<T, V, Rows>>(grid, block, 0, stream, sorted, values, C, to, part);
    if (!error) error = launch<join_sorted_pieces<T, V, Rows>>(grid, block, 0, stream, sorted, C, to, part);
    return problem(error);
  };
  if (sorted.n == 0 || C == 0) return nullptr;
  constexpr int V = kPack<T>;
  if (V > 1 && packs && C % V == 0) return go(Constant<V>{});
  return go(Constant<1>{});
}

// y [rows, C] = start, or zeros without one, plus the rows of `values` under their index.
inline Workspace add_sorted_workspace(int64_t n, int64_t C, DType dtype) {
  return {.shared = (sort_bytes(n) + 63) / 64 * 64 + sorted_sums_bytes(n, C, dtype)};
}
template <class T>
const char* add_sorted(const KernelArgs& args, ops::Id op, const View* start, const View& index,
                       const View& values, const View& y, int64_t C) {
  if (y.numel == 0 && index.numel == 0) return nullptr;
  const int64_t rows = y.size[0];
  const size_t bytes = static_cast<size_t>(y.numel) * sizeof(T);
  const cudaStream_t stream = stream_of(args);
  if (y.numel)
    if (const char* why =
            problem(start ? cudaMemcpyAsync(y.data, start->data, bytes, cudaMemcpyDeviceToDevice, stream)
                          : cudaMemsetAsync(y.data, 0, bytes, stream)))
      return why;
  return for_index(index.dtype, [&](auto index_type) -> const char* {
    using I = typename decltype(index_type)::type;
    SortedRows sorted{nullptr, index.numel, rows};
    if (const char* why = sort_positions<I>(args, index, rows, args.shared, &sorted.keys)) return why;
    const DenseRows<T> to{y.as<T>(), start ? start->as<T>() : nullptr, C};
    void* part = args.shared + (sort_bytes(index.numel) + 63) / 64 * 64;
    if (const char* why = sum_sorted(args, sorted, values.as<T>(), C, to,
                                     aligned(values.as<T>(), to.y) && (!start || aligned(to.start)), part))
      return why;
    return index.numel ? report_faults<I>(args, op, DataError::index, index, rows) : nullptr;
  });
}

}  // namespace plmcore::cuda
