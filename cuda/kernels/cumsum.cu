// x is [outer, n, inner]; each of the outer * inner columns is one chain, added up in float64 (int64 for
// whole numbers).
//   rows     inner is 1: a warp takes a chain, 32 elements at a time
//   columns  a thread takes a chain; neighbours read neighbours
#include "device/arithmetic.cuh"
#include "device/reduce.cuh"

namespace plmcore::cuda {

namespace {

template <class T> using Chain = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <class T>
__device__ __forceinline__ T element_of(Chain<T> sum) {
  return narrow<T>(static_cast<Acc<T>>(sum));
}

// grid (rows / 8), block 256
template <class T>
__global__ void __launch_bounds__(kThreads)
    cumsum_rows(const T* __restrict__ x, T* __restrict__ y, int64_t rows, int64_t n, bool reverse) {
  const int lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= rows) return;  // a whole warp leaves, and no barrier follows
  Chain<T> before = 0;
  for (int64_t first = 0; first < n; first += 32) {
    const int64_t i = first + lane, at = row * n + (reverse ? n - 1 - i : i);
    Chain<T> sum = i < n ? static_cast<Chain<T>>(widen(x[at])) : Chain<T>(0);
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const Chain<T> left = __shfl_up_sync(kFullWarp, sum, step);
      if (lane >= step) sum += left;
    }
    sum += before;
    if (i < n) y[at] = element_of<T>(sum);
    before = __shfl_sync(kFullWarp, sum, 31);
  }
}
template <class T>
__global__ void __launch_bounds__(kThreads)
    cumsum_columns(const T* __restrict__ x, T* __restrict__ y, int64_t columns, int64_t n, int64_t inner,
                   bool reverse) {
  for (int64_t c = first_of_thread(); c < columns; c += threads_of_grid()) {
    const int64_t base = c / inner * n * inner + c % inner;
    Chain<T> sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = base + (reverse ? n - 1 - j : j) * inner;
      sum += static_cast<Chain<T>>(widen(x[at]));
      y[at] = element_of<T>(sum);
    }
  }
}

}  // namespace

PLM_KERNEL(cumsum) {
  const View &x = args.in[0], &y = args.out[0];
  const int axis = static_cast<int>(args.i("axis"));
  const bool reverse = args.i("reverse");
  const int64_t n = x.size[axis], inner = x.inner(axis), chains = x.outer(axis) * inner;
  if (x.numel == 0) return nullptr;
  const auto go = [&](auto type) {
    using T = typename decltype(type)::type;
    if (inner == 1)
      return problem(launch<cumsum_rows<T>>(dim3(static_cast<unsigned>((chains + 7) / 8)), dim3(kThreads), 0,
                                            stream_of(args), x.as<T>(), y.as<T>(), chains, n, reverse));
    return problem(launch<cumsum_columns<T>>(grid_for(chains), dim3(kThreads), 0, stream_of(args), x.as<T>(),
                                             y.as<T>(), chains, n, inner, reverse));
  };
  return is_index(x.dtype) ? for_index(x.dtype, go) : for_float(x.dtype, go);
}

}  // namespace plmcore::cuda
