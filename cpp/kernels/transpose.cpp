// Axes of size 1 go, axes that stay neighbours merge. Then either the last axis stays last, and rows are
// copied; or the axis that is contiguous in x and the one that is contiguous in y span matrices that are
// turned tile by tile, each tile in blocks of one vector by one vector. Results larger than a core's cache go
// to memory past it, in strips along the rows of x, which may be a mapped file: each of its small pages is
// looked at in one go. Traffic: one read and one write.
#include <utility>

#include "kernels/move.h"
#include "kernels/stream.h"

namespace plmcore::PLM_ISA {

namespace {

struct Axis {
  int64_t size, from, to;  // strides in elements: in x, in y
};
struct Plan {
  int rank = 0;
  Axis axis[Shape::kMaxRank];  // in the order of y
};

Plan plan_of(const View& x, const View& y, const Attr* order) {
  int64_t from[Shape::kMaxRank], run = 1;
  for (int a = x.rank - 1; a >= 0; --a) {
    from[a] = run;
    run *= x.size[a];
  }
  Plan p;
  run = y.numel;
  for (int a = 0; a < y.rank; ++a) {
    if (y.size[a] == 1) continue;
    run /= y.size[a];
    const Axis next = {y.size[a], from[order->dims[a].rep()], run};
    if (p.rank && p.axis[p.rank - 1].from == next.size * next.from)
      p.axis[p.rank - 1] = {p.axis[p.rank - 1].size * next.size, next.from, next.to};
    else p.axis[p.rank++] = next;
  }
  if (p.rank == 0) p.axis[p.rank++] = {1, 1, 1};
  return p;
}

// Offsets of position `o` among the axes [0, rank), without `skip`.
PLM_INLINE void offsets(const Plan& p, int rank, int skip, int64_t o, int64_t& from, int64_t& to) {
  from = to = 0;
  for (int a = rank - 1; a >= 0; --a) {
    if (a == skip) continue;
    const int64_t at = o % p.axis[a].size;
    o /= p.axis[a].size;
    from += at * p.axis[a].from;
    to += at * p.axis[a].to;
  }
}

template <class T, int Bytes>
struct Block {  // as many elements as a vector of so many bytes holds, squared
  enum : int { n = Bytes / sizeof(T) };
  typedef T Vec __attribute__((vector_size(Bytes)));

  template <int... I>
  PLM_INLINE static Vec low(Vec a, Vec b, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I % 2 ? n : 0) + I / 2 ...);
  }
  template <int... I>
  PLM_INLINE static Vec high(Vec a, Vec b, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I % 2 ? n : 0) + n / 2 + I / 2 ...);
  }

  // put(c, column c of the block at x): log2(n) rounds that interleave row i with row i + n / 2.
  template <class F>
  PLM_INLINE static void turn(const T* x, int64_t x_stride, F put) {
    constexpr std::make_integer_sequence<int, n> lanes{};
    Vec a[n], b[n];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) __builtin_memcpy(&a[i], x + i * x_stride, Bytes);
#pragma GCC unroll 4
    for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < n / 2; ++i) {
        b[2 * i] = low(a[i], a[i + n / 2], lanes);
        b[2 * i + 1] = high(a[i], a[i + n / 2], lanes);
      }
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) a[i] = b[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) put(i, a[i]);
  }
};

// y[c * y_stride + r] = x[r * x_stride + c]
template <class T>
void turn_tile(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t columns) {
  using B = Block<T, 16>;
  constexpr int n = B::n;
  int64_t r = 0;
  for (; r + n <= rows; r += n) {
    int64_t c = 0;
    for (; c + n <= columns; c += n)
      B::turn(x + r * x_stride + c, x_stride,
              [&](int k, typename B::Vec v) { __builtin_memcpy(y + (c + k) * y_stride + r, &v, 16); });
    for (; c < columns; ++c)
      for (int k = 0; k < n; ++k) y[c * y_stride + r + k] = x[(r + k) * x_stride + c];
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) y[c * y_stride + r] = x[r * x_stride + c];
}

constexpr int64_t kFar = 2 << 20;  // bytes of y from which on it goes past the cache
constexpr int64_t kLine = 64;
constexpr int64_t kStrip = 2 * kLine;  // bytes of y's rows that a strip of x covers

// The same past the cache. The rows of y begin at lines, and `rows` fill lines of them.
template <class T>
void turn_strip(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t columns) {
  constexpr int size = sizeof(T),
                most = 16 * size;  // a block is 16 x 16 at most: that many vectors are registers
  using B = Block<T, (PLM_VECTOR_BYTES < most ? PLM_VECTOR_BYTES : most)>;
  constexpr int64_t n = B::n, ahead = 2 * kLine / size;
  int64_t c = 0;
  for (; c + n <= columns; c += n)
    for (int64_t r = 0; r < rows; r += n) {
      const T* block = x + r * x_stride + c;
      for (int64_t k = 0; k < n; ++k) __builtin_prefetch(block + k * x_stride + ahead);
      B::turn(block, x_stride, [&](int k, typename B::Vec v) { stream(y + (c + k) * y_stride + r, v); });
    }
  turn_tile(x + c, x_stride, y + c * y_stride, y_stride, rows, columns - c);
  end_streams();
}

template <class T>
void turn_far(const Plan& p, const Axis& column, int turned, int64_t matrices, const T* x, T* y) {
  const Axis last = p.axis[p.rank - 1];
  constexpr int64_t kRows = kStrip / sizeof(T), kColumns = 4096;
  const int64_t down = (last.size + kRows - 1) / kRows, across = (column.size + kColumns - 1) / kColumns;
  parallel_for(matrices * down * across, [&](int64_t t, int) {
    int64_t from, to;
    offsets(p, p.rank - 1, turned, t / (down * across), from, to);
    const int64_t r = t / across % down * kRows, c = t % across * kColumns;
    const int64_t nr = last.size - r < kRows ? last.size - r : kRows,
                  nc = column.size - c < kColumns ? column.size - c : kColumns;
    turn_strip(x + from + r * last.from + c, last.from, y + to + c * column.to + r, column.to, nr, nc);
  });
}

}  // namespace

PLM_KERNEL(transpose) {
  const View &x = args.in[0], &y = args.out[0];
  if (y.numel == 0) return;
  const Plan p = plan_of(x, y, args.find("order"));
  const Axis last = p.axis[p.rank - 1];
  const int64_t bytes = static_cast<int64_t>(size_of(x.dtype));

  if (last.from == 1) {
    const int64_t run = last.size * bytes;
    if (p.rank == 1) return copy_rows(1, run, y.as<char>(), run, x.as<char>(), run);
    const Axis row = p.axis[p.rank - 2];
    for_chunks(y.numel / last.size, rows_per_task(run), [&](int64_t b, int64_t e) {
      in_blocks(b, e, row.size, [&](int64_t o, int64_t first, int64_t count) {
        int64_t from, to;
        offsets(p, p.rank - 2, -1, o, from, to);
        copy_some(count, run, y.as<char>() + (o * row.size + first) * run, run,
                  x.as<char>() + (from + first * row.from) * bytes, row.from * bytes);
      });
    });
    return;
  }
  int turned = 0;  // the axis that is contiguous in x
  while (p.axis[turned].from != 1) ++turned;
  const Axis column = p.axis[turned];
  for_bytes(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int64_t kTile = 256 / sizeof(T);
    const int64_t down = (last.size + kTile - 1) / kTile, across = (column.size + kTile - 1) / kTile;
    const int64_t matrices = y.numel / (last.size * column.size);
    const bool whole_lines =
        last.size * bytes % kLine == 0 && reinterpret_cast<uintptr_t>(y.as<T>()) % kLine == 0;
    if (y.numel * bytes >= kFar && whole_lines)
      return turn_far(p, column, turned, matrices, x.as<T>(), y.as<T>());
    const int64_t area =
        (last.size < kTile ? last.size : kTile) * (column.size < kTile ? column.size : kTile);
    for_rows(matrices * down * across, area, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) {
        int64_t from, to;
        offsets(p, p.rank - 1, turned, t / (down * across), from, to);
        const int64_t r = t / down % across * kTile,
                      c = t % down * kTile;  // r counts along `column`, c along `last`
        const int64_t nr = column.size - r < kTile ? column.size - r : kTile,
                      nc = last.size - c < kTile ? last.size - c : kTile;
        const T* source = x.as<T>() + from + c * last.from + r;
        T* target = y.as<T>() + to + r * column.to + c;
        if (column.to < 8 * kTile) turn_tile(source, last.from, target, column.to, nc, nr);
        else {
          // Far apart, rows of a tile fall on few cache sets: turn it in a buffer, and write whole lines.
          alignas(64) T buffer[kTile * kTile];
          turn_tile(source, last.from, buffer, kTile, nc, nr);
          for (int64_t k = 0; k < nr; ++k)
            std::memcpy(target + k * column.to, buffer + k * kTile, static_cast<size_t>(nc) * sizeof(T));
        }
      }
    });
  });
}

}  // namespace plmcore::PLM_ISA
