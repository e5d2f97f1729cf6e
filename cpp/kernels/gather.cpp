// x [outer, n, inner], index [outer, m, inner]:  y[o, j, i] = x[o, index[o, j, i], i].
// Backward adds dy[o, j, i] to dx[o, index[o, j, i], i]; a task owns whole o, and walks j in order.
#include "kernels/indices.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(gather) {
  const View &x = args.in[0], &index = args.in[1], &y = args.out[0];
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t n = x.size[axis], m = y.size[axis], inner = y.inner(axis);
  for_index("gather", index.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    check_indices<I>(ops::id_gather, index, n);
    for_bytes(x.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      const I* p = index.as<I>();
      for_rows(y.outer(axis) * m, inner, [&](int64_t b, int64_t e) {
        in_blocks(b, e, m, [&](int64_t o, int64_t first, int64_t count) {
          const T* from = x.as<T>() + o * n * inner;
          const int64_t at = (o * m + first) * inner;
          T* to = y.as<T>() + at;
          if (inner == 1)
            for (int64_t j = 0; j < count; ++j) to[j] = from[p[at + j]];
          else
            for (int64_t j = 0; j < count * inner; j += inner)
              for (int64_t i = 0; i < inner; ++i) to[j + i] = from[p[at + j + i] * inner + i];
        });
      });
    });
  });
}

PLM_KERNEL(gather_grad, float_sums) {
  const View &dy = args.in[0], &index = args.in[1], &dx = args.out[0];
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t n = dx.size[axis], m = dy.size[axis], inner = dy.inner(axis);
  for_index("gather_grad", index.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    check_indices<I>(ops::id_gather_grad, index, n);
    for_float("gather_grad", dx.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      const I* p = index.as<I>();
      with_sums<T>(args, nullptr, [&](auto* sum) {
        for_rows(dy.outer(axis), m * inner, [&](int64_t b, int64_t e) {
          for (int64_t o = b; o < e; ++o)
            for (int64_t j = 0; j < m; ++j)
              for (int64_t i = 0; i < inner; ++i) {
                const int64_t at = (o * m + j) * inner + i;
                sum[(o * n + p[at]) * inner + i] += to_float(dy.as<T>()[at]);
              }
        });
      });
    });
  });
}

}  // namespace plmcore::PLM_ISA
