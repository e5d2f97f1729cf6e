// Sums over any axes of a contiguous x, shared by sum, mean and sum_to. core/reduce_plan.h merges the axes
// to an innermost run, summed or kept, and outer axes of both kinds.
//   rows     the run is summed: a warp takes an output, or a block takes a chunk of one
//   columns  the run is kept: a block of (32, 8) takes 32 columns and a chunk of the rows
// Chunks depend on sizes alone, and their sums are added in order. Traffic: one read of x, in 16-byte packs
// where a run is summed, whatever its start and length.
#pragma once

#include <type_traits>

#include "core/reduce_plan.h"
#include "device/axes.h"
#include "device/grid.h"
#include "device/kernel.h"
#include "device/reduce.cuh"

namespace plmcore::cuda {

inline constexpr int64_t kSumChunks = 64;  // of one output, at most
inline constexpr int64_t kWarpWork = 1 << 12;  // elements that a warp sums alone

// Whole numbers wrap around; floats are summed in float32 or float64, the chunks' sums in float64.
template <class T> using SumOf = std::conditional_t<std::is_integral_v<T>, uint64_t, Acc<T>>;
template <class T> using PartOf = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <class T, class R>
__device__ __forceinline__ R finished(PartOf<T> sum, double factor) {
  if constexpr (std::is_integral_v<T>) return static_cast<R>(sum);
  else return narrow<R>(static_cast<Acc<R>>(sum * factor));
}

// The lane's share of n elements from x on: single ones up to an address that is a multiple of 16, packs,
// single ones.
template <class T>
__device__ __forceinline__ SumOf<T> sum_share(const T* x, int64_t n, int lane, int lanes) {
  constexpr int V = kPack<T>;
  SumOf<T> sum = 0;
  int64_t head = (16 - reinterpret_cast<uintptr_t>(x) % 16) % 16 / sizeof(T);
  if (V == 1 || head > n) head = V == 1 ? 0 : n;
  if (lane < head) sum += static_cast<SumOf<T>>(widen(x[lane]));
  const int64_t packs = (n - head) / V;
  for (int64_t p = lane; p < packs; p += lanes) {
    Acc<T> v[V];
    load<V>(x + head + p * V, v);
#pragma unroll
    for (int j = 0; j < V; ++j) sum += static_cast<SumOf<T>>(v[j]);
  }
  const int64_t tail = head + packs * V + lane;
  if (tail < n) sum += static_cast<SumOf<T>>(widen(x[tail]));
  return sum;
}
// Over the pieces [begin, end) of an output; a summed run is `segments` pieces.
template <class T>
__device__ __forceinline__ PartOf<T> sum_pieces(const T* x, int64_t run, Divisor segments,
                                                const Axes<1>& summed, uint32_t begin, uint32_t end, int lane,
                                                int lanes) {
  PartOf<T> sum = 0;
  for (uint32_t p = begin; p < end; ++p) {
    const uint32_t place = segments.divide(p);
    int64_t at[1];
    summed.find(place, at);
    const int64_t first = (p - place * segments.size) * kSumSegment, left = run - first;
    sum += sum_share(x + at[0] + first, left < kSumSegment ? left : kSumSegment, lane, lanes);
  }
  return sum;
}

// grid (outputs / 8), block 256: a warp an output
template <class T, class R>
__global__ void __launch_bounds__(kThreads, kResident)
    sum_rows_by_warp(const T* __restrict__ x, R* __restrict__ y, int64_t outputs, int64_t run,
                     Divisor segments, uint32_t pieces, Axes<1> kept, Axes<1> summed, double factor) {
  const int lane = threadIdx.x % 32;
  const int64_t o = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (o >= outputs) return;  // a whole warp leaves, and no barrier follows
  int64_t at[1];
  kept.find(static_cast<uint32_t>(o), at);
  const auto sum = warp_reduce<Sum>(sum_pieces(x + at[0], run, segments, summed, 0, pieces, lane, 32));
  if (lane == 0) y[o] = finished<T, R>(sum, factor);
}
// grid (outputs, chunks), block 256; part [outputs][chunks]
template <class T>
__global__ void __launch_bounds__(kThreads, kResident)
    sum_rows_by_block(const T* __restrict__ x, PartOf<T>* __restrict__ part, int64_t run, Divisor segments,
                      uint32_t pieces, Axes<1> kept, Axes<1> summed) {
  const uint64_t chunks = gridDim.y, chunk = blockIdx.y;
  int64_t at[1];
  kept.find(blockIdx.x, at);
  const auto sum = block_reduce<Sum>(
      sum_pieces(x + at[0], run, segments, summed, static_cast<uint32_t>(pieces * chunk / chunks),
                 static_cast<uint32_t>(pieces * (chunk + 1) / chunks), threadIdx.x, kThreads));
  if (threadIdx.x == 0) part[blockIdx.x * chunks + chunk] = sum;
}

inline constexpr int kSumLanes = 8;  // rows that a block reads at once
// grid (outputs by column block, chunks), block (32, 8); part [outputs][chunks][columns]
template <class T>
__global__ void __launch_bounds__(32 * kSumLanes)
    sum_columns(const T* __restrict__ x, PartOf<T>* __restrict__ part, int64_t columns, Divisor column_blocks,
                uint32_t rows, Axes<1> kept, Axes<1> summed) {
  PLM_SHARED(PartOf<T>, lanes, [kSumLanes][32]);
  const uint64_t chunks = gridDim.y, chunk = blockIdx.y;
  const uint32_t o = column_blocks.divide(blockIdx.x);
  const int64_t column = static_cast<int64_t>(blockIdx.x - o * column_blocks.size) * 32 + threadIdx.x;
  SumOf<T> sum = 0;
  if (column < columns) {
    int64_t at[1], row[1];
    kept.find(o, at);
    const auto end = static_cast<uint32_t>(rows * (chunk + 1) / chunks);
    for (auto r = static_cast<uint32_t>(rows * chunk / chunks) + threadIdx.y; r < end; r += kSumLanes) {
      summed.find(r, row);
      sum += static_cast<SumOf<T>>(widen(x[at[0] + row[0] + column]));
    }
  }
  lanes[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
    PartOf<T> total = 0;
    for (int k = 0; k < kSumLanes; ++k) total += lanes[k][threadIdx.x];
    part[(o * chunks + chunk) * columns + column] = total;
  }
}
// y[o][c] = the sum over the chunks of part[o][chunk][c]; a thread an element
template <class T, class R>
__global__ void __launch_bounds__(kThreads, kResident)
    sum_chunks(const PartOf<T>* __restrict__ part, R* __restrict__ y, int64_t n, int64_t chunks,
               int64_t columns, Divisor width, double factor) {
  for (int64_t i = first_of_thread(); i < n; i += threads_of_grid()) {
    const uint32_t o = width.divide(static_cast<uint32_t>(i)), c = static_cast<uint32_t>(i) - o * width.size;
    PartOf<T> sum = 0;
    for (int64_t k = 0; k < chunks; ++k) sum += part[(o * chunks + k) * columns + c];
    y[i] = finished<T, R>(sum, factor);
  }
}

// What the sizes say about a sum.
struct SumPlan {
  ReducePlan axes;
  int64_t outputs, pieces, chunks;  // pieces: of an output, what its chunks are made of
  bool by_warp;

  SumPlan(const View& x, uint32_t summed) : axes(x, summed), outputs(axes.kept.count) {
    const int64_t rows = axes.summed.count;
    pieces = axes.run_summed ? axes.segments * rows : rows;
    by_warp = axes.run_summed && (axes.run * rows <= kWarpWork || outputs >= 1024);
    const int64_t blocks = axes.run_summed ? outputs : outputs * column_blocks();
    const int64_t wish = axes.run_summed ? pieces : (rows + 63) / 64, most = blocks < 256 ? kSumChunks : 1;
    chunks = wish < 1 || by_warp ? 1 : wish < most ? wish : most;
  }
  int64_t column_blocks() const { return (axes.run + 31) / 32; }
  int64_t columns() const { return axes.run_summed ? 1 : axes.run; }
  size_t workspace() const { return by_warp ? 0 : static_cast<size_t>(outputs * chunks * columns()) * 8; }
};

inline Axes<1> device_axes(const ReducePlan::Axes& from) {
  Axes<1> axes;
  axes.rank = from.n;
  for (int a = 0; a < from.n; ++a) {
    axes.size[a] = Divisor(from.size[a]);
    axes.stride[0][a] = from.stride[a];
  }
  return axes;
}

// y = factor * sum of x over the axes.
template <class T, class R>
const char* sum_over(const KernelArgs& args, const SumPlan& plan, double factor) {
  const View &x = args.in[0], &y = args.out[0];
  const cudaStream_t stream = stream_of(args);
  if (y.numel == 0) return nullptr;
  if (y.numel >> 31 || plan.pieces >> 31 || (plan.outputs * plan.column_blocks()) >> 31)
    return "a sum of 2^31 parts and more is not on this device yet";
  const Axes<1> kept = device_axes(plan.axes.kept), summed = device_axes(plan.axes.summed);
  const Divisor segments(plan.axes.segments > 0 ? plan.axes.segments : 1);
  if (plan.by_warp)
    return problem(launch<sum_rows_by_warp<T, R>>(
        dim3(static_cast<unsigned>((plan.outputs + kThreads / 32 - 1) / (kThreads / 32))), dim3(kThreads), 0,
        stream, x.as<T>(), y.as<R>(), plan.outputs, plan.axes.run, segments, plan.pieces, kept, summed,
        factor));
  auto* part = args.shared_as<PartOf<T>>();
  const dim3 grid(
      static_cast<unsigned>(plan.axes.run_summed ? plan.outputs : plan.outputs * plan.column_blocks()),
      static_cast<unsigned>(plan.chunks));
  const cudaError_t error =
      plan.axes.run_summed
          ? launch<sum_rows_by_block<T>>(grid, dim3(kThreads), 0, stream, x.as<T>(), part, plan.axes.run,
                                         segments, plan.pieces, kept, summed)
          : launch<sum_columns<T>>(grid, dim3(32, kSumLanes), 0, stream, x.as<T>(), part, plan.axes.run,
                                   Divisor(plan.column_blocks()), plan.pieces, kept, summed);
  if (error) return problem(error);
  return problem(launch<sum_chunks<T, R>>(grid_for(y.numel), dim3(kThreads), 0, stream, part, y.as<R>(),
                                          y.numel, plan.chunks, plan.columns(), Divisor(plan.columns()),
                                          factor));
}

}  // namespace plmcore::cuda
