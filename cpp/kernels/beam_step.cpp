// Each row of logits is read twice, the second time from cache: for its log sum, and for its best n, which
// are kept in a heap whose root is the worst of them. A vector of candidates none of which beats the root
// costs one comparison. Then the K sorted lists of a batch row are merged. No buffer of the size of the
// logits.
#include "kernels/row_sums.h"

namespace plmcore::PLM_ISA {

template <class A>
struct Candidate {
  A value;
  int64_t token;
};
// Does a come after b? NaN is the last, the larger token the later of equals.
template <class A>
PLM_INLINE bool after(const Candidate<A>& a, const Candidate<A>& b) {
  const bool na = a.value != a.value, nb = b.value != b.value;
  if (na != nb) return na;
  if (!na && a.value != b.value) return a.value < b.value;
  return a.token > b.token;
}
// Moves the root of a heap down to its place; the root of a heap comes after all others.
template <class A>
static void sift(Candidate<A>* heap, int64_t n, int64_t i) {
  const Candidate<A> c = heap[i];
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && after(heap[child + 1], heap[child])) ++child;
    if (!after(heap[child], c)) break;
    heap[i] = heap[child];
  }
  heap[i] = c;
}

// The best m of a row of V candidates score + (x - top - log_sum), sorted.
template <class T, class A = typename Lane<T>::Scalar>
static void best_of_row(const T* x, int64_t V, A score, Candidate<A>* heap, int64_t m) {
  const RowSums<A> s = row_sums<false>(x, static_cast<const T*>(nullptr), V);
  const auto value = [&](auto v) __attribute__((always_inline)) { return v - s.top - s.log_sum + score; };
  for (int64_t i = 0; i < m; ++i) heap[i] = {value(static_cast<A>(to_float(x[i]))), i};
  for (int64_t i = m / 2; i-- > 0;) sift(heap, m, i);
  const auto offer = [&](int64_t i) __attribute__((always_inline)) {
    const Candidate<A> c{value(static_cast<A>(to_float(x[i]))), i};
    if (!after(heap[0], c)) return;
    heap[0] = c;
    sift(heap, m, 0);
  };
  int64_t i = m;
  if constexpr (!std::is_same_v<T, double>)
    for (; i + kF <= V; i += kF) {
      const vi worse = value(load(x + i)) <=
                       heap[0].value;  // false for NaN on either side: those are looked at one by one
      if (lane_bits(worse) != (1u << kF) - 1) [[unlikely]]
        for (int k = 0; k < kF; ++k) offer(i + k);
    }
  for (; i < V; ++i) offer(i);
  for (int64_t n = m; n > 1; --n) {  // the last goes to the end
    const Candidate<A> last = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = last;
    sift(heap, n - 1, 0);
  }
}

static Workspace workspace(const KernelArgs& args) {
  const int64_t rows = args.in[0].size[0], V = args.in[0].size[1], n = args.out[0].size[1];
  return {.shared = static_cast<size_t>(rows * (n < V ? n : V)) * 16 + static_cast<size_t>(rows) * 8};
}

PLM_KERNEL(beam_step, workspace) {
  const int64_t B = args.in[1].size[0], K = args.in[1].size[1], V = args.in[0].size[1],
                n = args.out[0].size[1], m = n < V ? n : V;
  check<ValueError>(n <= K * V, "beam_step: n must be at most the ", K * V, " candidates (K * V), got ", n);
  int64_t *beams = args.out[1].as<int64_t>(), *tokens = args.out[2].as<int64_t>();
  if (n == 0) return;
  for_float("beam_step", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    const T* x = args.in[0].as<T>();
    const A* scores = args.in[1].as<A>();
    A* out = args.out[0].as<A>();
    auto* best = args.shared_as<Candidate<A>>();
    auto* next = reinterpret_cast<int64_t*>(best + B * K * m);  // of each list, the first that is not taken
    parallel_for(B * K, [&](int64_t r, int) { best_of_row(x + r * V, V, scores[r], best + r * m, m); });
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t k = 0; k < K; ++k) next[k] = 0;
      for (int64_t j = 0; j < n; ++j) {
        int64_t from = -1;
        Candidate<A> c{};
        for (int64_t k = 0; k < K; ++k) {
          if (next[k] == m) continue;
          Candidate<A> head = best[(b * K + k) * m + next[k]];
          head.token += k * V;  // the order of equals goes by beam, then token
          if (from >= 0 && !after(c, head)) continue;
          c = head;
          from = k;
        }
        ++next[from];
        out[b * n + j] = c.value;
        beams[b * n + j] = from;
        tokens[b * n + j] = c.token - from * V;
      }
    }
  });
}

}  // namespace plmcore::PLM_ISA
