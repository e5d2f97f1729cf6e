// Each row is cleared and gets its one element: traffic is one write of the output.
#include "kernels/indices.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(one_hot) {
  const View &ids = args.in[0], &y = args.out[0];
  const int64_t V = y.last();
  const uint64_t one = element_bits(1, y.dtype);
  for_index("one_hot", ids.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    check_indices<I>(ops::id_one_hot, ids, V);
    for_bytes(y.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      for_rows(ids.numel, V, [&](int64_t b, int64_t e) {
        std::memset(static_cast<void*>(y.as<T>() + b * V), 0, static_cast<size_t>((e - b) * V) * sizeof(T));
        for (int64_t r = b; r < e; ++r) y.as<T>()[r * V + ids.as<I>()[r]] = static_cast<T>(one);
      });
    });
  });
}

}  // namespace plmcore::PLM_ISA
