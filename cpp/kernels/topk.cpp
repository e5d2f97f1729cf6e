// A row keeps its best k in a heap whose top is the worst of them. Most elements lose against the top at
// once, several at a time; the heap is sorted at the end. Traffic: one read of x.
#include <algorithm>

#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

namespace {
struct Entry {
  double value;
  int64_t at;
};
static_assert(sizeof(Entry) == 16);  // the workspace of ops/topk.cpp
// a before b in the result.
PLM_INLINE bool before(const Entry& a, const Entry& b) {
  const bool na = a.value != a.value, nb = b.value != b.value;
  if (na || nb) return na == nb ? a.at < b.at : na;
  return a.value > b.value || (a.value == b.value && a.at < b.at);
}
}  // namespace

template <class T>
static void best_of_row(const T* x, int64_t n, int64_t k, Entry* heap, T* values, int64_t* index) {
  const auto order = [](const Entry& a, const Entry& b) { return before(a, b); };
  for (int64_t i = 0; i < k; ++i) heap[i] = {static_cast<double>(to_float(x[i])), i};
  std::make_heap(heap, heap + k, order);
  const auto offer = [&](int64_t i) {
    const Entry e = {static_cast<double>(to_float(x[i])), i};
    if (!before(e, heap[0])) return;
    std::pop_heap(heap, heap + k, order);
    heap[k - 1] = e;
    std::push_heap(heap, heap + k, order);
  };
  int64_t i = k;
  if constexpr (std::is_same_v<T, float>) {
    for (; i + 4 * kF <= n; i += 4 * kF) {
      // A later element must be larger, not equal, to get in; NaN fails the comparison with <= and so gets a
      // look.
      const vf worst = splat(static_cast<float>(heap[0].value));
      const vi lose = (load(x + i) <= worst) & (load(x + i + kF) <= worst) & (load(x + i + 2 * kF) <= worst) &
                      (load(x + i + 3 * kF) <= worst);
      int32_t all = -1;
      for (int j = 0; j < kF; ++j) all &= lose[j];
      if (all) continue;
      for (int j = 0; j < 4 * kF; ++j) offer(i + j);
    }
  }
  for (; i < n; ++i) offer(i);
  std::sort_heap(heap, heap + k, order);
  for (i = 0; i < k; ++i) {
    values[i] = x[heap[i].at];
    index[i] = heap[i].at;
  }
}

static Workspace workspace(const KernelArgs& args) {
  return {.per_worker = static_cast<size_t>(args.out[0].last()) * 16};
}

PLM_KERNEL(topk, workspace) {
  const View& x = args.in[0];
  const int64_t n = x.last(), k = args.out[0].last(), rows = x.rows();
  if (k == 0 || rows == 0) return;
  check(k <= n, "topk: k must be at most the last axis of x, got ", k, " and ", n);
  for_float("topk", x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const int64_t each = kGrain / n > 1 ? kGrain / n : 1;
    parallel_for((rows + each - 1) / each, [&](int64_t t, int worker) {
      for (int64_t r = t * each, e = r + each < rows ? r + each : rows; r < e; ++r)
        best_of_row(x.as<T>() + r * n, n, k, args.worker_as<Entry>(worker), args.out[0].as<T>() + r * k,
                    args.out[1].as<int64_t>() + r * k);
    });
  });
}

}  // namespace plmcore::PLM_ISA
