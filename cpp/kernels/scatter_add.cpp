// y = x, then y[index[j], :] += updates[j, :] in the order of j.
#include "kernels/indices.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(scatter_add, float_sums) {
  const View &x = args.in[0], &index = args.in[1], &updates = args.in[2];
  const int64_t n = x.size[0], m = index.numel, inner = x.inner(0);
  for_index("scatter_add", index.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    check_indices<I>(ops::id_scatter_add, index, n);
    for_addable("scatter_add", x.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      with_sums<T>(args, &x, [&](auto* sum) {
        add_rows(sum, updates.as<T>(), index.as<I>(), int64_t{1}, n, m, inner);
      });
    });
  });
}

}  // namespace plmcore::PLM_ISA
