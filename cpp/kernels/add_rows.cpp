// Blocks of rows of y: a copy of dense, then the sums of the given rows while the block is in cache.
#include "kernels/row_sparse.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(add_rows) {
  const int64_t V = args.out[0].size[0], C = args.out[0].inner(0), n = args.in[1].numel;
  const int64_t* rows = args.in[1].as<int64_t>();
  check_rows(ops::id_add_rows, args.in[1], V);
  for_float("add_rows", args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T *dense = args.in[0].as<T>(), *values = args.in[2].as<T>();
    T* y = args.out[0].as<T>();
    for_rows(V, C, [&](int64_t b, int64_t e) {
      std::memcpy(static_cast<void*>(y + b * C), dense + b * C, static_cast<size_t>((e - b) * C) * sizeof(T));
      for (int64_t k = first_row(rows, n, b); k < n && rows[k] < e; ++k) {
        T* row = y + rows[k] * C;
        for (int64_t c = 0; c < C; ++c)
          row[c] = from_float<T>(to_float(row[c]) + to_float(values[k * C + c]));
      }
    });
  });
}

}  // namespace plmcore::PLM_ISA
