#include "kernels/row_sparse.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(to_dense) {
  const View &rows = args.in[0], &y = args.out[0];
  check_rows(ops::id_to_dense, rows, y.size[0]);
  place_rows(rows.as<int64_t>(), rows.numel, args.in[1].as<char>(), y.as<char>(), y.size[0],
             y.inner(0) * static_cast<int64_t>(size_of(y.dtype)));
}

}  // namespace plmcore::PLM_ISA
