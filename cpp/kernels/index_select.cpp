// x [outer, n, inner], index [m]:  y[o, j, :] = x[o, index[j], :], runs of `inner` elements.
#include "kernels/indices.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(index_select) {
  const View &x = args.in[0], &index = args.in[1], &y = args.out[0];
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t n = x.size[axis], m = index.numel,
                unit = x.inner(axis) * static_cast<int64_t>(size_of(x.dtype));
  for_index("index_select", index.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    check_indices<I>(ops::id_index_select, index, n);
    if (y.numel == 0) return;
    for_chunks(x.outer(axis) * m, rows_per_task(unit), [&](int64_t b, int64_t e) {
      in_blocks(b, e, m, [&](int64_t o, int64_t first, int64_t count) {
        for (int64_t j = first; j < first + count; ++j)
          copy_some(1, unit, y.as<char>() + (o * m + j) * unit, unit,
                    x.as<char>() + (o * n + index.as<I>()[j]) * unit, unit);
      });
    });
  });
}

PLM_KERNEL(index_select_grad, float_sums) {
  const View &dy = args.in[0], &index = args.in[1], &dx = args.out[0];
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t outer = dx.outer(axis), n = dx.size[axis], m = index.numel, inner = dx.inner(axis);
  for_index("index_select_grad", index.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    check_indices<I>(ops::id_index_select_grad, index, n);
    for_float("index_select_grad", dx.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      with_sums<T>(args, nullptr,
                   [&](auto* sum) { add_rows(sum, dy.as<T>(), index.as<I>(), outer, n, m, inner); });
    });
  });
}

}  // namespace plmcore::PLM_ISA
