// The positions of an index tensor sorted by the row that they name; equal rows keep the order of positions.
// A radix sort of 8 bits a pass: a block counts the digits of its tile, one block adds the counts up, and
// each block places its keys. Within a tile the lanes of a warp that have the same digit find each other by a
// vote, so that the order is that of the keys. Traffic: three passes of 8 bytes for each 8 bits of the number
// of rows.
#pragma once

#include "device/fault.cuh"
#include "device/scan.cuh"

namespace plmcore::cuda {

inline constexpr int kDigits = 256, kSortRounds = 8;
inline constexpr int64_t kSortTile = kSortRounds * kThreads;  // keys of a block
static_assert(kDigits == kThreads);

// row << 32 | position. A row outside of the table is noted; it becomes `rows`, and so comes last.
template <class I>
__global__ void __launch_bounds__(kThreads)
    sort_make_keys(const I* __restrict__ index, int64_t n, int64_t rows, uint64_t* __restrict__ keys,
                   unsigned long long* bad_position) {
  for (int64_t i = first_of_thread(); i < n; i += threads_of_grid()) {
    const I row = index[i];
    const bool good = within(row, rows);
    if (!good) note_bad(bad_position, i);
    keys[i] = static_cast<uint64_t>(good ? static_cast<int64_t>(row) : rows) << 32 | static_cast<uint64_t>(i);
  }
}

__device__ __forceinline__ int digit_of(uint64_t key, int shift) {
  return static_cast<int>(key >> shift & (kDigits - 1));
}

// counts [digit][tile]
template <int kSize = kDigits>
__global__ void __launch_bounds__(kThreads)
    sort_count(const uint64_t* __restrict__ keys, int64_t n, int shift, uint32_t* __restrict__ counts) {
  PLM_SHARED(uint32_t, count, [kSize]);
  count[threadIdx.x] = 0;
  __syncthreads();
  for (int round = 0; round < kSortRounds; ++round) {
    const int64_t i = blockIdx.x * kSortTile + round * kThreads + threadIdx.x;
    if (i < n) atomicAdd(&count[digit_of(keys[i], shift)], 1u);
  }
  __syncthreads();
  counts[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = count[threadIdx.x];
}
template <int kSize = kDigits>
__global__ void __launch_bounds__(kThreads)
    sort_place(const uint64_t* __restrict__ keys, int64_t n, int shift, const uint32_t* __restrict__ starts,
               uint64_t* __restrict__ sorted) {
  constexpr int kWarps = kThreads / 32;
  PLM_SHARED(uint32_t,
             place, [kWarps][kSize]);  // first how many keys of a digit a warp has, then where they go
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t next = starts[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x];  // of digit threadIdx.x
  for (int round = 0; round < kSortRounds; ++round) {
    for (int w = 0; w < kWarps; ++w) place[w][threadIdx.x] = 0;
    __syncthreads();
    const int64_t i = blockIdx.x * kSortTile + round * kThreads + threadIdx.x;
    const uint64_t key = i < n ? keys[i] : 0;
    const int digit = i < n ? digit_of(key, shift) : kSize;
    const unsigned equal = __match_any_sync(kFullWarp, digit);
    const int rank = __popc(equal & ((1u << lane) - 1));
    if (rank == 0 && i < n) place[warp][digit] = static_cast<uint32_t>(__popc(equal));
    __syncthreads();
    for (int w = 0; w < kWarps; ++w) {
      const uint32_t count = place[w][threadIdx.x];
      place[w][threadIdx.x] = next;
      next += count;
    }
    __syncthreads();
    if (i < n) sorted[place[warp][digit] + static_cast<uint32_t>(rank)] = key;
    __syncthreads();  // the next round clears `place`
  }
}

inline int64_t sort_tiles(int64_t n) { return (n + kSortTile - 1) / kSortTile; }
inline size_t sort_bytes(int64_t n) {
  return 2 * static_cast<size_t>(n) * sizeof(uint64_t) +
         static_cast<size_t>(sort_tiles(n)) * kDigits * sizeof(uint32_t);
}

// *sorted = where the keys are: in `space`, which has room for sort_bytes(n). The caller reports noted
// indices.
template <class I>
const char* sort_positions(const KernelArgs& args, const View& index, int64_t rows, char* space,
                           const uint64_t** sorted) {
  const int64_t n = index.numel, tiles = sort_tiles(n);
  if (n >> 31 || rows >> 32) return "2^31 indices, or 2^32 rows, and more are not on this device yet";
  auto *keys = reinterpret_cast<uint64_t*>(space), *other = keys + n;
  auto* counts = reinterpret_cast<uint32_t*>(other + n);
  *sorted = keys;
  if (n == 0) return nullptr;
  const cudaStream_t stream = stream_of(args);
  const dim3 grid(static_cast<unsigned>(tiles)), block(kThreads);
  cudaError_t error = launch<sort_make_keys<I>>(grid_for(n), block, 0, stream, index.as<I>(), n, rows, keys,
                                                gpu_of(args).bad_position);
  for (int shift = 32; !error && shift < 64 && (static_cast<uint64_t>(rows) << 32) >> shift; shift += 8) {
    error = launch<sort_count<>>(grid, block, 0, stream, keys, n, shift, counts);
    if (!error) error = launch<scan_in_place<uint32_t>>(dim3(1), block, 0, stream, counts, tiles * kDigits);
    if (!error) error = launch<sort_place<>>(grid, block, 0, stream, keys, n, shift, counts, other);
    uint64_t* written = other;
    other = keys;
    keys = written;
  }
  *sorted = keys;
  return problem(error);
}

}  // namespace plmcore::cuda
