// Attention of a few queries over many keys (decoding with a cache): bound by reading k and v once. A task is
// one sequence and a run of keys; it takes the keys in the order of memory, all heads of a key together, so
// that the reads are long streams. Each run leaves its maximum, sum and weighted values per head; they are
// joined in order.
#pragma once

#include "kernels/attention_mask.h"
#include "kernels/attention_tiles.h"

namespace plmcore::PLM_ISA {

template <class T>
class Decode {
 public:
  using A = typename Lane<T>::Scalar;

  Decode(const KernelArgs& args, const AttentionLayout& at)
      : args_(args),
        at_(at),
        space_(at.B, at.T, at.S, at.H, at.D),
        chunks_(space_.chunks),
        rows_(at.T * at.H),
        parts_(args.shared_as<A>()),
        stats_(parts_ + space_.parts) {}

  void run() {
    const T* q = at_.in[0].template as<T>();
    const T* k = at_.k_of(q, at_.in[1].template as<const T>());
    const T* v = at_.v_of(q, at_.in[1].template as<const T>(), at_.in[2].template as<const T>());
    parallel_for(at_.B * chunks_,
                 [&](int64_t task, int worker) { look(q, k, v, task / chunks_, task % chunks_, worker); });
    for_rows(at_.B * rows_, chunks_ * at_.D, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) join(r / rows_, r % rows_);
    });
  }

 private:
  // Four keys at a time keep several loads under way and share the loads of q, or of the sums.
  void look(const T* q, const T* k, const T* v, int64_t b, int64_t chunk, int worker) const {
    const int64_t H = at_.H, D = at_.D, stride = at_.k_stride;
    const Sequence s = at_.sequence(b);
    const Pattern pattern(args_, at_, b, s);
    A* parts = parts_ + (b * chunks_ + chunk) * rows_ * D;
    A *m = stats_ + (b * chunks_ + chunk) * space_.rows * 2, *l = m + space_.rows;
    A *scores = args_.template worker_as<A>(worker), *query = scores + space_.rows * kDecodeKeys;
    fill(m, space_.rows, -std::numeric_limits<A>::infinity());
    fill(l, space_.rows, A(0));
    fill(parts, rows_ * D, A(0));
    const int64_t lowest = pattern.begin(0), highest = pattern.end(0, at_.T);
    const int64_t begin = lowest > chunk * kDecodeKeys ? lowest : chunk * kDecodeKeys,
                  end = highest < (chunk + 1) * kDecodeKeys ? highest : (chunk + 1) * kDecodeKeys;
    if (begin >= end) return;
    const int64_t n = end - begin, padded = round_up(n, kPanel<A>);

    const A scale = static_cast<A>(args_.f("scale") * 1.44269504088896340736);
    for (int64_t t = 0; t < at_.T; ++t)
      load_rows(q + (s.q_row + t) * at_.q_stride, D, H, D, query + t * H * D, D, scale);
    k += (s.k_row + begin) * stride;
    v += (s.k_row + begin) * stride;
    for (int64_t r = rows_; r < space_.rows; ++r) fill(scores + r * kDecodeKeys, padded, A(0));
    for (int64_t j = 0; j < n; j += 4) {
      const T* key[4];
      for (int u = 0; u < 4; ++u) key[u] = k + (j + u < n ? j + u : j) * stride;
      for (int64_t r = 0; r < rows_; ++r) {
        A dots[4];
        dot4(query + r * D, key, r % H * D, dots);
        for (int u = 0; u < 4; ++u) scores[r * kDecodeKeys + j + u] = dots[u];
      }
    }
    for (int64_t r = 0; r < rows_; ++r) {
      const ScoreRules<T, A> rules{pattern, {at_.in[kMask], b, r % H}, {at_.in[kBias], b, r % H}};
      rules.apply(r / H, begin, n, padded, scores + r * kDecodeKeys);
    }
    for (int64_t r = 0; r < space_.rows; r += kSoftmaxRows)
      softmax_rows(scores + r * kDecodeKeys, kDecodeKeys, padded, m + r, l + r, static_cast<A*>(nullptr),
                   true);
    for (int64_t j = 0; j < n; j += 4) {
      const T* value[4];
      for (int u = 0; u < 4; ++u) value[u] = v + (j + u < n ? j + u : j) * stride;
      for (int64_t r = 0; r < rows_; ++r) {
        A weight[4];
        for (int u = 0; u < 4; ++u) weight[u] = j + u < n ? scores[r * kDecodeKeys + j + u] : A(0);
        add4(parts + r * D, value, r % H * D, weight);
      }
    }
  }

  // Loops over the four keys are unrolled: otherwise their sums would lie in memory.
  PLM_INLINE void dot4(const A* q, const T* const* key, int64_t at, A* dots) const {
    constexpr int W = Lane<A>::n;
    using V = typename Lane<A>::Vec;
    V sum[4] = {V{}, V{}, V{}, V{}};
    int64_t d = 0;
    for (; d + W <= at_.D; d += W) {
      const V x = load(q + d);
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) sum[u] += x * load(key[u] + at + d);
    }
    if constexpr (W >= 4) {
      const V sums = lane_sums<4>(sum);
      __builtin_memcpy(dots, &sums, sizeof(A) * 4);
    } else {
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) dots[u] = reduce_add(sum[u]);
    }
    for (; d < at_.D; ++d)
      for (int u = 0; u < 4; ++u) dots[u] += q[d] * static_cast<A>(to_float(key[u][at + d]));
  }
  PLM_INLINE void add4(A* sum, const T* const* value, int64_t at, const A* weight) const {
    constexpr int W = Lane<A>::n;
    int64_t d = 0;
    for (; d + W <= at_.D; d += W) {
      auto x = load(sum + d);
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) x += load(value[u] + at + d) * weight[u];
      store(sum + d, x);
    }
    for (; d < at_.D; ++d)
      for (int u = 0; u < 4; ++u) sum[d] += static_cast<A>(to_float(value[u][at + d])) * weight[u];
  }

  // Row r = query * H + head of sequence b.
  void join(int64_t b, int64_t r) const {
    constexpr A kNever = -std::numeric_limits<A>::infinity();
    const int64_t H = at_.H, D = at_.D;
    const int64_t step = 2 * space_.rows;
    const A* ms = stats_ + b * chunks_ * step + r;
    const A* ls = ms + space_.rows;
    A* sum = parts_ + b * chunks_ * rows_ * D + r * D;
    A m = kNever, l = 0;
    for (int64_t c = 0; c < chunks_; ++c) m = m > ms[c * step] ? m : ms[c * step];
    for (int64_t c = 0; c < chunks_; ++c) {
      const A factor = m == kNever ? A(1) : std::exp2(ms[c * step] - m);
      l += ls[c * step] * factor;
      const A* part = sum + c * rows_ * D;
      for (int64_t d = 0; d < D; ++d) sum[d] = (c ? sum[d] : A(0)) + part[d] * factor;
    }
    T* out = args_.out[0].template as<T>() + (b * rows_ + r) * D;
    const A inverse = l == 0 ? A(0) : 1 / l;  // 0: it saw nothing
    for (int64_t d = 0; d < D; ++d) out[d] = from_float<T>(sum[d] * inverse);
    A* lse = args_.out[1].template as<A>() + (b * H + r % H) * at_.T + r / H;
    lse[0] = m;
    lse[at_.rows()] = std::log2(l);
  }

  const KernelArgs& args_;
  const AttentionLayout& at_;
  const DecodeSpace space_;
  const int64_t chunks_, rows_;
  A *parts_, *stats_;  // [B][chunks]: T * H rows of D sums; their maxima, then their sums
};

}  // namespace plmcore::PLM_ISA
