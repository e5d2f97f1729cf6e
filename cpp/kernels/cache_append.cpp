#include "kernels/move.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(cache_append) {
  const View &cache = args.in[0], &rows = args.in[1];
  const int64_t unit = cache.inner(1) * static_cast<int64_t>(size_of(cache.dtype)),
                length = rows.size[1] * unit, stride = cache.size[1] * unit;
  copy_rows(cache.size[0], length, cache.as<char>() + args.dim("position") * unit, stride, rows.as<char>(),
            length);
}

}  // namespace plmcore::PLM_ISA
