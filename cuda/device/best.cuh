// The best m elements of each row, in order: for topk and beam_step. The first of equals comes first.
//
// A row is cut into tiles of up to 4088 elements. A block holds one in registers, in 16-byte packs, and finds
// its best m in m rounds: the best of each thread, of each warp, of the block; the thread that had it looks
// again. The winners of all tiles are candidates of the next level, until one tile is left. Traffic: one read
// of x. More than 1024 of a row: a block reads the row again for each of them.
#pragma once

#include <type_traits>

#include "device/extremum.cuh"
#include "device/rows.cuh"

namespace plmcore::cuda {

inline constexpr int kBestThreads = 256, kBestElements = 16;  // of a block, of a thread
inline constexpr int64_t kBestTile = kBestThreads * kBestElements - 8;  // a tile may start anywhere in a pack
inline constexpr int64_t kMostByTile = 1024;

// The best of the block: every thread gets it. At most 8 warps.
template <class Order, class A, class P>
__device__ __forceinline__ Best<Order, A, P> best_of_block(Best<Order, A, P> best) {
  PLM_SHARED(A, values, [kBestThreads / 32]);
  PLM_SHARED(P, places, [kBestThreads / 32]);
  best.take_from_warp();
  if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = best.value, places[threadIdx.x / 32] = best.at;
  __syncthreads();
  best = {};
  for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) best.take(values[w], places[w]);
  __syncthreads();  // the next call writes them again
  return best;
}

// What a level reads and writes. index: of candidates, their places in the row, -1 where there is none; null
// at the first level. y, at: [rows][tiles][m].
template <class T>
struct BestTiles {
  const T* x;
  const int64_t* index;
  int64_t n, tile, m;
  T* y;
  int64_t* at;
};
struct NothingElse {
  template <class Row, class Held>
  __device__ __forceinline__ void operator()(const Row&, const Held&, int64_t, int64_t, int64_t) const {}
};

// grid (tiles, rows), block (32 .. 256). also(row, held, number of the row, tile, tiles) looks at the tile as
// well.
template <class Order, class T, class Also>
__global__ void __launch_bounds__(kBestThreads, 2) best_of_tile(BestTiles<T> in, Also also) {
  using A = Acc<T>;
  using Row = RowOf<T, kBestElements / kPack<T>, false>;
  const int64_t tiles = gridDim.x, tile = blockIdx.x, r = blockIdx.y, start = r * in.n + tile * in.tile,
                left = in.n - tile * in.tile;
  const T* x = in.x + start;
  const int64_t* index = in.index ? in.index + start : nullptr;
  const Row row(x, static_cast<int>(left < in.tile ? left : in.tile));
  typename Row::Held v;
  uint32_t gone = 0;  // a bit for each element that was taken, or is none
  row.each([&](int n, int column) { row.read(x, column, v[n]); });
  also(row, v, r, tile, tiles);
  const auto look = [&] {
    Best<Order, A, int> best;
    row.each([&](int n, int column) {
      row.inside(column, [&](int j) {
        if (!(gone >> (n * Row::V + j) & 1)) best.take(v[n][j], column + j);
      });
    });
    return best;
  };
  if (index)
    row.each([&](int n, int column) {
      row.inside(column,
                 [&](int j) { gone |= static_cast<uint32_t>(index[column + j] < 0) << (n * Row::V + j); });
    });
  Best<Order, A, int> own = look();
  const int64_t to = (r * tiles + tile) * in.m;
  for (int64_t k = 0; k < in.m; ++k) {
    const Best<Order, A, int> best = best_of_block(own);
    if (best.at < 0) {  // the tile has fewer: for all threads alike
      if (threadIdx.x == 0) in.at[to + k] = -1;
      continue;
    }
    if (own.at != best.at) continue;
    in.y[to + k] = narrow<T>(best.value);
    in.at[to + k] = index ? index[best.at] : tile * in.tile + best.at;
    row.each([&](int n, int column) {
      row.inside(column,
                 [&](int j) { gone |= static_cast<uint32_t>(column + j == best.at) << (n * Row::V + j); });
    });
    own = look();
  }
}

// grid (rows), block (32 .. 256): each round reads the row and takes the best of what comes after the last
// one.
template <class Order, class T>
__global__ void __launch_bounds__(kBestThreads) best_by_rounds(const T* __restrict__ x, int64_t n, int64_t m,
                                                               T* __restrict__ y, int64_t* __restrict__ at) {
  using A = Acc<T>;
  const int64_t r = blockIdx.x;
  Best<Order, A> last;
  for (int64_t k = 0; k < m; ++k) {
    Best<Order, A> best;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const A v = widen(x[r * n + i]);
      const bool after =
          last.at < 0 || Order::better(last.value, v) || (!Order::better(v, last.value) && i > last.at);
      if (after) best.take(v, i);
    }
    last = best_of_block(best);
    if (threadIdx.x == 0) y[r * m + k] = x[r * n + last.at], at[r * m + k] = last.at;
  }
}

// ---- the host's side ----

inline dim3 best_block(int64_t n) {
  const int64_t threads = (n + 8 + 32 * kBestElements - 1) / (32 * kBestElements) * 32;
  return dim3(static_cast<unsigned>(threads < kBestThreads ? threads : kBestThreads));
}
inline int64_t best_tiles(int64_t n) { return (n + kBestTile - 1) / kBestTile; }
// Tiles of equal length: of the last few elements of a row alone, fewer than m may be left.
inline int64_t best_tile_length(int64_t n) { return (n + best_tiles(n) - 1) / best_tiles(n); }

// Two levels of candidates take turns: y and at of `rows` rows each.
inline size_t best_bytes(int64_t rows, int64_t n, int64_t m, size_t element) {
  if (best_tiles(n) <= 1 || m > kMostByTile) return 0;
  const auto level = static_cast<size_t>(rows * best_tiles(n) * m);
  return 2 * ((level * element + 63) / 64 * 64 + level * sizeof(int64_t));
}

// y, at [rows][m]: the best m of the rows of x [rows][n], m <= n. `also` sees the tiles of x.
template <class Order, class T, class Also>
const char* best_of_rows(const KernelArgs& args, const T* x, int64_t rows, int64_t n, int64_t m, T* y,
                         int64_t* at, char* space, const Also& also) {
  if (rows == 0 || m == 0) return nullptr;
  const cudaStream_t stream = stream_of(args);
  if (rows > 65535) return "more than 65,535 rows are not on this device yet";
  if (m > kMostByTile) {
    const BestTiles<T> nothing{x, nullptr, n, best_tile_length(n), 0, nullptr, nullptr};  // for `also`
    const dim3 grid(static_cast<unsigned>(best_tiles(n)), static_cast<unsigned>(rows));
    cudaError_t error = cudaSuccess;
    if (!std::is_same_v<Also, NothingElse>)
      error = launch<best_of_tile<Order, T, Also>>(grid, best_block(nothing.tile), 0, stream, nothing, also);
    if (!error)
      error = launch<best_by_rounds<Order, T>>(dim3(static_cast<unsigned>(rows)), best_block(n), 0, stream, x,
                                               n, m, y, at);
    return problem(error);
  }
  const size_t level = best_bytes(rows, n, m, sizeof(T)) / 2;
  const size_t values = (static_cast<size_t>(rows * best_tiles(n) * m) * sizeof(T) + 63) / 64 * 64;
  BestTiles<T> in{x, nullptr, n, 0, m, nullptr, nullptr};
  for (int turn = 0;; ++turn) {
    const int64_t tiles = best_tiles(in.n);
    in.tile = best_tile_length(in.n);
    char* half = space + (turn % 2 ? level : 0);
    in.y = tiles == 1 ? y : reinterpret_cast<T*>(half);
    in.at = tiles == 1 ? at : reinterpret_cast<int64_t*>(half + values);
    const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(rows));
    const cudaError_t error =
        turn == 0 ? launch<best_of_tile<Order, T, Also>>(grid, best_block(in.tile), 0, stream, in, also)
                  : launch<best_of_tile<Order, T, NothingElse>>(grid, best_block(in.tile), 0, stream, in,
                                                                NothingElse{});
    if (error || tiles == 1) return problem(error);
    in = {in.y, in.at, tiles * m, 0, m, nullptr, nullptr};
  }
}

}  // namespace plmcore::cuda
