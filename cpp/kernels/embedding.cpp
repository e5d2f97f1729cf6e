// Forward copies rows. Backward sorts the positions by row (radix sort, stable: equal rows keep the order of
// positions) and then sums each row's run of positions on its own, so the bits do not depend on how the rows
// are split among threads. Traffic: dy once, and one write of the gradient; no pass of zeros under rows that
// are written anyway.
#include "kernels/indices.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(embedding) {
  const View &weight = args.in[0], &ids = args.in[1];
  const int64_t V = weight.size[0], n = ids.numel,
                bytes = weight.size[1] * static_cast<int64_t>(size_of(weight.dtype));
  const char* from = weight.as<char>();
  char* to = args.out[0].as<char>();
  for_index("embedding", ids.dtype, [&](auto type) {
    using I = typename decltype(type)::type;
    const I* id = ids.as<I>();
    check_indices<I>(ops::id_embedding, ids, V);
    for_rows(n, bytes / 4, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i)
        std::memcpy(to + i * bytes, from + id[i] * bytes, static_cast<size_t>(bytes));
    });
  });
}

// A position under its row: sorts by row, and by position within a row.
struct Sorted {
  const uint64_t* key;  // row << 32 | position
  uint64_t* spare;      // the other buffer, n + 1 numbers
  int64_t n;

  int64_t row(int64_t k) const { return static_cast<int64_t>(key[k] >> 32); }
  int64_t position(int64_t k) const { return static_cast<int64_t>(key[k] & 0xffffffffu); }
  int64_t run_end(int64_t k) const {
    const int64_t r = row(k);
    while (k < n && row(k) == r) ++k;
    return k;
  }
  int64_t first_of(int64_t r) const {  // the first k with row(k) >= r
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t mid = (low + high) / 2;
      if (row(mid) < r) low = mid + 1;
      else high = mid;
    }
    return low;
  }
};

static Sorted sort_positions(const KernelArgs& args, int64_t V) {
  const int64_t n = args.in[1].numel;
  check<ValueError>(n < (int64_t{1} << 32) && V <= (int64_t{1} << 32),
                    "embedding: the gradient takes at most 2^32 ids and rows, got ", n, " and ", V);
  uint64_t *a = args.shared_as<uint64_t>(), *b = a + n + 1;
  uint32_t* count = reinterpret_cast<uint32_t*>(b + n + 1);
  for_index("embedding", args.in[1].dtype, [&](auto type) {
    using I = typename decltype(type)::type;
    const I* id = args.in[1].as<I>();
    check_indices<I>(ops::id_embedding, args.in[1], V);
    for (int64_t i = 0; i < n; ++i) a[i] = static_cast<uint64_t>(id[i]) << 32 | static_cast<uint64_t>(i);
  });
  constexpr int kBits = 11;
  for (int shift = 32; shift < 64 && (static_cast<uint64_t>(V - 1) << 32) >> shift; shift += kBits) {
    const auto digit = [&](uint64_t key) { return key >> shift & ((1u << kBits) - 1); };
    std::memset(count, 0, sizeof(uint32_t) << kBits);
    for (int64_t i = 0; i < n; ++i) ++count[digit(a[i])];
    uint32_t start = 0;
    for (int d = 0; d < 1 << kBits; ++d) {
      const uint32_t c = count[d];
      count[d] = start;
      start += c;
    }
    for (int64_t i = 0; i < n; ++i) b[count[digit(a[i])]++] = a[i];
    uint64_t* t = a;
    a = b;
    b = t;
  }
  return {a, b, n};
}

// to[c0 ... c1) = sum of dy over the positions k ... end; the half types are summed in `sums`.
template <class T, class A = typename Lane<T>::Scalar>
PLM_INLINE void sum_run(const Sorted& s, int64_t k, int64_t end, const T* dy, int64_t C, int64_t c0,
                        int64_t c1, T* to, A* sums) {
  const T* row = dy + s.position(k) * C;
  if (k + 1 == end) {
    std::memcpy(to + c0, row + c0, static_cast<size_t>(c1 - c0) * sizeof(T));
    return;
  }
  A* sum = sums;
  if constexpr (std::is_same_v<T, A>) sum = to;
  for (int64_t c = c0; c < c1; ++c) sum[c] = to_float(row[c]);
  for (++k; k < end; ++k) {
    row = dy + s.position(k) * C;
    for (int64_t c = c0; c < c1; ++c) sum[c] += to_float(row[c]);
  }
  if constexpr (!std::is_same_v<T, A>)
    for (int64_t c = c0; c < c1; ++c) to[c] = from_float<T>(sum[c]);
}

static Workspace workspace(const KernelArgs& args) {
  return {.shared = static_cast<size_t>(args.in[1].numel + 1) * 16 + 8192,
          .per_worker = static_cast<size_t>(args.in[0].last()) * sizeof(float)};
}

PLM_KERNEL(embedding_grad, workspace) {
  const int64_t V = args.out[0].size[0], C = args.out[0].size[1];
  if (V * C == 0) return;
  const Sorted s = sort_positions(args, V);
  // Blocks of rows; few rows (segments, positions) are split by columns as well.
  int64_t block = kGrain / C;
  if (block > V / 16) block = (V + 15) / 16;
  if (block < 1) block = 1;
  const int64_t blocks = (V + block - 1) / block;
  int64_t strips = blocks >= 16 ? 1 : 16 / blocks;
  strips = strips * 64 > C ? (C + 63) / 64 : strips;
  for_float("embedding_grad", args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* dy = args.in[0].as<T>();
    T* dw = args.out[0].as<T>();
    parallel_for(blocks * strips, [&](int64_t task, int worker) {
      const int64_t b = task / strips * block, e = b + block < V ? b + block : V;
      const int64_t c0 = C * (task % strips) / strips, c1 = C * (task % strips + 1) / strips;
      const auto clear = [&](int64_t from, int64_t to) {
        if (strips == 1) std::memset(dw + from * C, 0, static_cast<size_t>((to - from) * C) * sizeof(T));
        else
          for (int64_t r = from; r < to; ++r)
            std::memset(dw + r * C + c0, 0, static_cast<size_t>(c1 - c0) * sizeof(T));
      };
      int64_t next = b;
      for (int64_t k = s.first_of(b); k < s.n && s.row(k) < e;) {
        const int64_t row = s.row(k), end = s.run_end(k);
        clear(next, row);
        sum_run(s, k, end, dy, C, c0, c1, dw + row * C, args.worker_as<typename Lane<T>::Scalar>(worker));
        next = row + 1;
        k = end;
      }
      clear(next, e);
    });
  });
}

PLM_KERNEL(embedding_grad_rows, workspace) {
  const int64_t U = args.out[0].size[0], C = args.out[1].size[1];
  const Sorted s = sort_positions(args, args.dim("rows"));
  int64_t* rows = args.out[0].as<int64_t>();
  uint64_t* start = s.spare;
  int64_t u = 0;
  for (int64_t k = 0; k < s.n; k = s.run_end(k), ++u) {
    rows[u] = s.row(k);
    start[u] = static_cast<uint64_t>(k);
  }
  start[u] = static_cast<uint64_t>(s.n);
  for_float("embedding_grad_rows", args.out[1].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* dy = args.in[0].as<T>();
    T* values = args.out[1].as<T>();
    const int64_t each = C < kGrain ? kGrain / (C > 0 ? C : 1) : 1;
    parallel_for((U + each - 1) / each, [&](int64_t task, int worker) {
      for (int64_t r = task * each; r < U && r < (task + 1) * each; ++r)
        sum_run(s, static_cast<int64_t>(start[r]), static_cast<int64_t>(start[r + 1]), dy, C, 0, C,
                values + r * C, args.worker_as<typename Lane<T>::Scalar>(worker));
    });
  });
}

}  // namespace plmcore::PLM_ISA
