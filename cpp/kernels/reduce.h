// Sums over any axes, shared by sum, mean and sum_to. A summed innermost run is added up in vectors, a
// partial sum per 16K elements in float, the partial sums in double and in order. A kept innermost run is a
// matrix whose rows are added up: columns in blocks that stay in the first cache, 256 rows at a time.
// Traffic: one read of x.
#pragma once

#include "core/reduce_plan.h"
#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

template <class T>
PLM_INLINE typename Lane<T>::Scalar sum_run(const T* x, int64_t n) {
  constexpr int W = Lane<T>::n;
  using V = typename Lane<T>::Vec;
  V s0{}, s1{}, s2{}, s3{};
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    s0 += load(x + i);
    s1 += load(x + i + W);
    s2 += load(x + i + 2 * W);
    s3 += load(x + i + 3 * W);
  }
  for (; i + W <= n; i += W) s0 += load(x + i);
  if (i < n) s1 += load_part(x + i, static_cast<int>(n - i));
  return reduce_add((s0 + s1) + (s2 + s3));
}

// sum[c] += x[0][c] + ... + x[rows - 1][c]
template <class T, class A>
PLM_INLINE void add_rows(const T* const* x, int rows, int64_t n, A* sum) {
  constexpr int W = Lane<T>::n;
  int64_t c = 0;
  if (rows == 4) {
    for (; c + W <= n; c += W)
      store(sum + c, load(sum + c) + ((load(x[0] + c) + load(x[1] + c)) + (load(x[2] + c) + load(x[3] + c))));
    for (; c < n; ++c)
      sum[c] += (to_float(x[0][c]) + to_float(x[1][c])) + (to_float(x[2][c]) + to_float(x[3][c]));
    return;
  }
  for (int r = 0; r < rows; ++r)
    for (int64_t i = 0; i < n; ++i) sum[i] += to_float(x[r][i]);
}

// The summed positions [begin, end) of one kept position, n columns from x on; the result goes to
// total[0..n).
template <class T, class A>
PLM_INLINE void sum_columns(const ReducePlan& plan, const T* x, int64_t begin, int64_t end, int64_t n,
                            A* total) {
  A block[kSumColumns];
  for (int64_t c = 0; c < n; ++c) total[c] = 0;
  const bool simple = plan.summed.n == 1;
  for (int64_t r = begin; r < end;) {
    const int64_t stop = r + kSumRows < end ? r + kSumRows : end;
    for (int64_t c = 0; c < n; ++c) block[c] = 0;
    for (; r < stop; r += 4) {
      const T* rows[4];
      const int count = stop - r < 4 ? static_cast<int>(stop - r) : 4;
      for (int k = 0; k < count; ++k)
        rows[k] = x + (simple ? (r + k) * plan.summed.stride[0] : plan.summed.offset(r + k));
      add_rows(rows, count, n, block);
    }
    r = stop;
    for (int64_t c = 0; c < n; ++c) total[c] += block[c];
  }
}

// y = factor * sum of x over the plan's axes.
template <class T>
static void reduce_sum(const KernelArgs& args, const ReducePlan& plan, double factor) {
  using A = typename Lane<T>::Scalar;
  const T* x = args.in[0].as<T>();
  T* y = args.out[0].as<T>();
  const int64_t kept = plan.kept.count, chunks = plan.chunks;
  if (args.out[0].numel == 0) return;
  if (args.in[0].numel == 0) {
    for (int64_t i = 0; i < args.out[0].numel; ++i) y[i] = from_float<T>(static_cast<A>(0 * factor));
    return;
  }
  if (plan.run_summed) {
    const int64_t per = plan.segments, parts = per * plan.summed.count;
    const auto segment = [&](const T* from, int64_t p) __attribute__((always_inline)) {
      const int64_t b = p % per * kSumSegment, e = b + kSumSegment < plan.run ? b + kSumSegment : plan.run;
      return static_cast<double>(sum_run(from + plan.summed.offset(p / per) + b, e - b));
    };
    if (chunks == 1) {
      for_rows(kept, plan.run * plan.summed.count, [&](int64_t b, int64_t e) {
        for (int64_t o = b; o < e; ++o) {
          const T* from = x + plan.kept.offset(o);
          double total = 0;
          for (int64_t p = 0; p < parts; ++p) total += segment(from, p);
          y[o] = from_float<T>(static_cast<A>(total * factor));
        }
      });
      return;
    }
    double* part = args.shared_as<double>();
    for_rows(kept * parts, plan.run < kSumSegment ? plan.run : kSumSegment, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) part[t] = segment(x + plan.kept.offset(t / parts), t % parts);
    });
    for (int64_t o = 0; o < kept; ++o) {
      double total = 0;
      for (int64_t p = 0; p < parts; ++p) total += part[o * parts + p];
      y[o] = from_float<T>(static_cast<A>(total * factor));
    }
    return;
  }
  const int64_t blocks = plan.column_blocks(), rows = plan.summed.count, width = plan.run;
  A* part = args.shared_as<A>();
  const auto task = [&](int64_t t) {
    const int64_t k = t % chunks, block = t / chunks % blocks, o = t / chunks / blocks,
                  c = block * kSumColumns;
    const int64_t n = c + kSumColumns < width ? kSumColumns : width - c;
    A total[kSumColumns];
    A* to = chunks == 1 ? total : part + (o * chunks + k) * width + c;
    sum_columns<T, A>(plan, x + plan.kept.offset(o) + c, chunk_begin(rows, chunks, k),
                      chunk_begin(rows, chunks, k + 1), n, to);
    if (chunks == 1)
      for (int64_t i = 0; i < n; ++i) y[o * width + c + i] = from_float<T>(static_cast<A>(total[i] * factor));
  };
  const int64_t tasks = kept * blocks * chunks,
                work = (rows / chunks + 1) * (width < kSumColumns ? width : kSumColumns);
  for_rows(tasks, work, [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e; ++t) task(t);
  });
  if (chunks == 1) return;
  for_rows(kept * blocks, chunks * kSumColumns, [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e; ++t) {
      const int64_t o = t / blocks, c = t % blocks * kSumColumns;
      const int64_t n = c + kSumColumns < width ? kSumColumns : width - c;
      A total[kSumColumns] = {};
      for (int64_t k = 0; k < chunks; ++k) {
        const A* from = part + (o * chunks + k) * width + c;
        for (int64_t i = 0; i < n; ++i) total[i] += from[i];
      }
      for (int64_t i = 0; i < n; ++i) y[o * width + c + i] = from_float<T>(static_cast<A>(total[i] * factor));
    }
  });
}

// Integers: exact in any order.
template <class T, class R>
static void reduce_sum_whole(const KernelArgs& args, const ReducePlan& plan) {
  const T* x = args.in[0].as<T>();
  R* y = args.out[0].as<R>();
  const int64_t step = plan.run_summed ? 0 : 1, outputs = args.out[0].numel,
                inner = plan.run_summed ? 1 : plan.run;
  if (args.in[0].numel == 0) {
    for (int64_t i = 0; i < outputs; ++i) y[i] = 0;
    return;
  }
  for_rows(outputs, args.in[0].numel / (outputs ? outputs : 1), [&](int64_t b, int64_t e) {
    for (int64_t o = b; o < e; ++o) {
      const T* from = x + plan.kept.offset(o / inner) + o % inner * step;
      uint64_t total = 0;  // wraps around
      for (int64_t p = 0; p < plan.summed.count; ++p) {
        const T* run = from + plan.summed.offset(p);
        if (plan.run_summed)
          for (int64_t i = 0; i < plan.run; ++i) total += static_cast<uint64_t>(run[i]);
        else total += static_cast<uint64_t>(*run);
      }
      y[o] = static_cast<R>(total);
    }
  });
}

}  // namespace plmcore::PLM_ISA
