// What the recurrent kernels share. Sequences are taken by falling length, so that those still running at a
// step are the first ones, and nothing is computed for padding. What is kept of all steps lies step after
// step: row offset[s] + i belongs to step s of the i-th longest sequence.
// A step is one product on the pool, [rows, K] by a weight that is packed once for all steps, cut into blocks
// of units; the block's cells follow in the same task, while its sums are in cache. A call of one step, as
// decoding makes them, reads the weight as it lies.
#pragma once

#include "core/fault.h"
#include "kernels/few_rows.h"
#include "kernels/gemm.h"
#include "kernels/math.h"
#include "kernels/parts.h"
#include "kernels/row.h"

namespace plmcore::PLM_ISA {

constexpr int64_t kUnits = 64;  // of a task; a panel of a packed weight divides it

// Which rows are at work at which step.
struct Schedule {
  int64_t B, T, longest = 0;
  bool reverse = false;
  int64_t *order, *length;  // [B]: by falling length
  int64_t *active, *offset, *next;  // [T + 1]: sequences at work at a step, and at all steps before it

  Schedule(int64_t batch, int64_t steps, Parts& parts)
      : B(batch),
        T(steps),
        order(parts.take<int64_t>(batch)),
        length(parts.take<int64_t>(batch)),
        active(parts.take<int64_t>(steps + 2)),
        offset(parts.take<int64_t>(steps + 2)),
        next(parts.take<int64_t>(steps + 2)) {}

  // lengths: all of T where there is no such input.
  void fill(ops::Id op, const View& lengths, bool from_the_end) {
    reverse = from_the_end;
    const auto steps_of = [&](int64_t b) {
      if (!lengths) return T;
      return lengths.dtype == DType::int64 ? lengths.as<int64_t>()[b]
                                           : static_cast<int64_t>(lengths.as<int32_t>()[b]);
    };
    for (int64_t s = 0; s <= T; ++s) next[s] = 0;
    for (int64_t b = 0; b < B; ++b) {
      const int64_t n = steps_of(b);
      if (n < 0 || n > T) {
        Fault fault = fault_in(op, lengths);
        fault.error = DataError::length;
        fault.value = n;
        fault.limit = T;
        fault.at = b;
        raise(fault);
      }
      ++next[n];
    }
    active[T] = 0;
    for (int64_t s = T; s-- > 0;) active[s] = active[s + 1] + next[s + 1];
    offset[0] = 0;
    for (int64_t s = 0; s < T; ++s) {
      offset[s + 1] = offset[s] + active[s];
      if (active[s] > 0) longest = s + 1;
    }
    for (int64_t s = 0; s <= T; ++s) next[s] = active[s];
    for (int64_t b = 0; b < B; ++b) {
      const int64_t n = steps_of(b), i = next[n]++;
      order[i] = b;
      length[i] = n;
    }
  }
  int64_t rows() const { return offset[longest]; }
  // The row of [B T, ...] that the i-th longest sequence is at.
  int64_t row(int64_t i, int64_t s) const { return order[i] * T + (reverse ? length[i] - 1 - s : s); }
  bool ends(int64_t i, int64_t s) const { return s + 1 == length[i]; }
  // 0 where x [B, T, width] is padding.
  template <class X>
  void clear_padding(X* x, int64_t width) const {
    for (int64_t i = 0; i < B; ++i)
      std::memset(x + (order[i] * T + length[i]) * width, 0,
                  static_cast<size_t>((T - length[i]) * width) * sizeof(X));
  }
};

// A matrix that each of `steps` multiplies by, in `parts` blocks of N columns of the product.
template <class T>
struct StepWeight {
  using S = typename Lane<T>::Scalar;
  Operand<T> first;
  int64_t N, K, parts, between;  // elements between blocks
  bool packs;
  float* packed;

  StepWeight(const Operand<T>& weight, int64_t n, int64_t k, int64_t blocks, int64_t apart, int64_t steps,
             Parts& space)
      : first(weight),
        N(n),
        K(k),
        parts(blocks),
        between(apart),
        packs(steps > 1 && !std::is_same_v<T, double>) {
    packed = space.take<float>(packs ? parts * block() + kNR : 0);
  }
  int64_t block() const { return ceil_div(N, kNR) * kNR * K; }
  Operand<T> operand(int64_t part) const { return {first.p + part * between, first.ld, first.k_contiguous}; }
  void pack() const {
    if constexpr (!std::is_same_v<T, double>)
      for (int64_t g = 0; packs && g < parts && K > 0; ++g)
        pack_strip(operand(g), 0, N, K, packed + g * block());
  }
  // Columns [n0, n0 + n) of a block; n0 is a multiple of kUnits.
  void multiply(const KernelArgs& args, int worker, int64_t part, int64_t m, const S* a, int64_t n0,
                int64_t n, S* c, int64_t ldc) const {
    if constexpr (std::is_same_v<T, float>)
      if (!packs && m <= kGemmFewRows && first.k_contiguous && first.ld == K)
        return few_rows_columns<1>(m, K, 0, n, a, K, operand(part).p + n0 * K, c, ldc);
    const float* at = packs ? packed + part * block() + n0 * K : nullptr;
    gemm_tile(int64_t{0}, m, n0, n, K, Operand<S>{a, K, true}, operand(part), at, c, ldc,
              args.worker_as<float>(worker));
  }
};

// f(first, count, worker) over blocks of units.
template <class F>
PLM_INLINE void over_units(int64_t H, F f) {
  parallel_for(ceil_div(H, kUnits),
               [&](int64_t t, int worker) { f(t * kUnits, min_of(kUnits, H - t * kUnits), worker); });
}

// Rows of x [B, width] in the order of the schedule; 0 where there is no x.
template <class T, class S>
PLM_INLINE void take_in_order(const Schedule& at, const View& x, int64_t width, S* to) {
  for (int64_t i = 0; i < at.B; ++i)
    for (int64_t j = 0; j < width; ++j)
      to[i * width + j] = x ? S(to_float(x.as<T>()[at.order[i] * width + j])) : S(0);
}
template <class T, class S>
PLM_INLINE void give_in_order(const Schedule& at, const S* from, int64_t width, T* x) {
  for (int64_t i = 0; i < at.B; ++i)
    for (int64_t j = 0; j < width; ++j) x[at.order[i] * width + j] = from_float<T>(from[i * width + j]);
}

// What each step's product took from the step before: h, then rows of y.   -> [rows, P]
template <class T, class S>
PLM_INLINE void take_previous(const Schedule& at, const View& h, const View& y, int64_t P, S* to) {
  const int64_t back = at.reverse ? 1 : -1;
  for (int64_t s = 0; s < at.longest; ++s)
    for_rows(at.active[s], P, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const T* from = s ? y.as<T>() + (at.row(i, s) + back) * P : h.as<T>() + at.order[i] * P;
        S* row = to + (at.offset[s] + i) * P;
        over_row<T>(P, [&](int64_t j, int part) { store_at(row, j, part, load_at(from, j, part)); });
      }
    });
}

// dweight [M, N] = sum over rows r of a[r, M]^T b[r, N]. `sums`: [M, N] for the half types.
template <class T, class S>
PLM_INLINE void weight_gradient(const KernelArgs& args, char* shared, int64_t M, int64_t N, int64_t rows,
                                const S* a, const S* b, S* sums, T* out) {
  S* to = sums;
  if constexpr (std::is_same_v<T, S>) to = out;
  gemm(args, shared, M, N, rows, Operand<S>{a, M, false}, Operand<S>{b, N, false}, to, N);
  if constexpr (!std::is_same_v<T, S>)
    for_chunks(M * N, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = from_float<T>(to[i]);
    });
}

template <class V, class S>
PLM_INLINE V clipped(V x, S limit) {
  return limit > 0 ? max(splat(-limit), min(splat(limit), x)) : x;
}
// d where |x| is below the limit, which has clipped x, and 0 elsewhere.
template <class V, class S>
PLM_INLINE V where_free(V x, S limit, V d) {
  return limit > 0 ? (abs(x) < splat(limit) ? d : V{}) : d;
}

}  // namespace plmcore::PLM_ISA
