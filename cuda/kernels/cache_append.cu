#include "device/move.cuh"

namespace plmcore::cuda {

PLM_KERNEL(cache_append) {
  const View &cache = args.in[0], &rows = args.in[1];
  const int64_t inner = cache.inner(1), length = rows.size[1] * inner;
  return move_rows(args, cache.size[0], length, rows, 0, length, cache, args.dim("position") * inner,
                   cache.size[1] * inner);
}

}  // namespace plmcore::cuda
