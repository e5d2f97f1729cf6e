// The rows are merged first, with the place of each in a and in b; then its values are copied or added.
#include "kernels/row_sparse.h"

namespace plmcore::PLM_ISA {

static Workspace workspace(const KernelArgs& args) {
  return {.shared = static_cast<size_t>(args.out[0].numel) * 2 * sizeof(int64_t)};
}

PLM_KERNEL(merge_rows, workspace) {
  const int64_t n = args.in[0].numel, m = args.in[2].numel, W = args.out[0].numel, C = args.out[1].inner(0);
  const int64_t *p = args.in[0].as<int64_t>(), *q = args.in[2].as<int64_t>();
  for (const int i : {0, 2}) check_rows(ops::id_merge_rows, args.in[i], INT64_MAX);
  int64_t *rows = args.out[0].as<int64_t>(), *from_a = args.shared_as<int64_t>(), *from_b = from_a + W;
  for (int64_t i = 0, k = 0, w = 0; w < W; ++w) {
    const bool in_a = i < n && (k >= m || p[i] <= q[k]), in_b = k < m && (i >= n || q[k] <= p[i]);
    rows[w] = in_a ? p[i] : q[k];
    from_a[w] = in_a ? i++ : -1;
    from_b[w] = in_b ? k++ : -1;
  }
  for_float("merge_rows", args.out[1].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T *a = args.in[1].as<T>(), *b = args.in[3].as<T>();
    T* y = args.out[1].as<T>();
    for_rows(W, C, [&](int64_t begin, int64_t end) {
      for (int64_t w = begin; w < end; ++w) {
        const T *x = a + from_a[w] * C, *z = b + from_b[w] * C;
        if (from_a[w] >= 0 && from_b[w] >= 0)
          for (int64_t c = 0; c < C; ++c) y[w * C + c] = from_float<T>(to_float(x[c]) + to_float(z[c]));
        else
          std::memcpy(static_cast<void*>(y + w * C), from_a[w] >= 0 ? x : z,
                      static_cast<size_t>(C) * sizeof(T));
      }
    });
  });
}

}  // namespace plmcore::PLM_ISA
