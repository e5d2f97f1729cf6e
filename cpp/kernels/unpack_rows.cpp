#include "kernels/row_sparse.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(unpack_rows) {
  const View &index = args.in[1], &y = args.out[0];
  const int64_t V = y.size[0] * y.size[1];
  check_rows(ops::id_unpack_rows, index, V);
  place_rows(index.as<int64_t>(), index.numel, args.in[0].as<char>(), y.as<char>(), V,
             y.inner(1) * static_cast<int64_t>(size_of(y.dtype)));
}

}  // namespace plmcore::PLM_ISA
