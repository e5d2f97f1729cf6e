// The sum of two row-sparse gradients: rows of a and of b, sorted; a row of both is added.
// The rows of b that a has not are picked (device/scan.cuh). A row's place in the sum is then its own number
// and that of the rows before it in the other list, both by binary search. A second kernel adds or copies the
// values: one read of each, one write of the sum.
#include <limits>

#include "device/row_sparse.cuh"
#include "device/scan.cuh"

namespace plmcore::cuda {

namespace {

struct OnlyInB {
  GivenRows a, b;
  int64_t* picked;

  __device__ __forceinline__ bool chosen(int64_t k) const {
    const int64_t i = a.first_from(b.rows[k]);
    return i == a.n || a.rows[i] != b.rows[k];
  }
  __device__ __forceinline__ void put(int64_t at, int64_t k) const { picked[at] = k; }
};

// Thread i places row i of a, or the picked row i - n of b. from [W][2]: where the values are in a and b, or
// -1.
template <class Unused = void>
__global__ void __launch_bounds__(kThreads)
    merge_places(GivenRows a, GivenRows b, const int64_t* __restrict__ picked, int64_t* __restrict__ rows,
                 int64_t* __restrict__ from, int64_t W) {
  const int64_t only_b = W - a.n;
  for (int64_t i = first_of_thread(); i < W; i += threads_of_grid()) {
    int64_t at, in_a = -1, in_b = -1, row;
    if (i < a.n) {
      row = a.rows[in_a = i];
      const int64_t k = b.first_from(row);
      if (k < b.n && b.rows[k] == row) in_b = k;
      at = i + GivenRows{picked, only_b}.first_from(k);
    } else {
      row = b.rows[in_b = picked[i - a.n]];
      at = i - a.n + a.first_from(row);
    }
    if (at >= W) continue;  // the rows are not sorted
    rows[at] = row;
    from[2 * at] = in_a;
    from[2 * at + 1] = in_b;
  }
}
// A thread a pack of V elements, `width` packs a row.
template <class T, int V>
__global__ void __launch_bounds__(kThreads)
    merge_values(const T* __restrict__ a, const T* __restrict__ b, const int64_t* __restrict__ from,
                 T* __restrict__ y, int64_t packs, Divisor width) {
  for (int64_t p = first_of_thread(); p < packs; p += threads_of_grid()) {
    const uint32_t w = width.divide(static_cast<uint32_t>(p)), c = static_cast<uint32_t>(p) - w * width.size;
    const int64_t in_a = from[2 * w], in_b = from[2 * w + 1];
    Acc<T> sum[V] = {}, other[V];
    if (in_a >= 0) load<V>(a + (in_a * width.size + c) * V, sum);
    if (in_b >= 0) {
      load<V>(b + (in_b * width.size + c) * V, other);
#pragma unroll
      for (int j = 0; j < V; ++j) sum[j] = in_a >= 0 ? sum[j] + other[j] : other[j];
    }
    store<V>(y + p * V, sum);
  }
}

}  // namespace

// from [W][2], picked [m], the counts of the picking
static Workspace workspace(const KernelArgs& args) {
  const int64_t m = args.in[2].numel;
  return {.shared = static_cast<size_t>(2 * args.out[0].numel + m) * sizeof(int64_t) + pick_bytes(m)};
}

PLM_KERNEL(merge_rows, workspace) {
  const View &rows = args.out[0], &y = args.out[1];
  const int64_t W = rows.numel, m = args.in[2].numel, C = y.inner(0);
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  if (W == 0) return nullptr;
  if (y.numel >> 31) return "2^31 elements and more are not on this device yet";
  const GivenRows a = given_rows(args, args.in[0], kNoLimit), b = given_rows(args, args.in[2], kNoLimit);
  auto *from = args.shared_as<int64_t>(), *picked = from + 2 * W;
  const cudaStream_t stream = stream_of(args);
  const size_t bytes = static_cast<size_t>(2 * W) * sizeof(int64_t);
  if (const char* why = problem(cudaMemsetAsync(from, 0xff, bytes, stream))) return why;  // -1
  if (const char* why = pick(args, OnlyInB{a, b, picked}, m, picked + m)) return why;
  if (const char* why = problem(launch<merge_places<>>(grid_for(W), dim3(kThreads), 0, stream, a, b, picked,
                                                       rows.as<int64_t>(), from, W)))
    return why;
  if (y.numel)
    if (const char* why = for_float(y.dtype, [&](auto type) {
          using T = typename decltype(type)::type;
          const T *p = args.in[1].as<T>(), *q = args.in[3].as<T>();
          const auto go = [&]<int V>(Constant<V>) {
            return problem(launch<merge_values<T, V>>(grid_for(y.numel / V), dim3(kThreads), 0, stream, p, q,
                                                      from, y.as<T>(), y.numel / V, Divisor(C / V)));
          };
          constexpr int V = kPack<T>;
          return C % V == 0 && aligned(p, q, y.as<T>()) ? go(Constant<V>{}) : go(Constant<1>{});
        }))
      return why;
  if (const char* why = check_rows(args, ops::id_merge_rows, args.in[0], kNoLimit)) return why;
  return check_rows(args, ops::id_merge_rows, args.in[2], kNoLimit);
}

}  // namespace plmcore::cuda
