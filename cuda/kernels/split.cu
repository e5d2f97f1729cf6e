#include "device/move.cuh"

namespace plmcore::cuda {

PLM_KERNEL(split) {
  const View& x = args.in[0];
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t outer = x.outer(axis), inner = x.inner(axis), stride = x.size[axis] * inner;
  int64_t at = 0;
  for (int k = 0; k < args.n_out; ++k) {
    const int64_t length = args.out[k].size[axis] * inner;
    if (const char* why = move_rows(args, outer, length, x, at, stride, args.out[k], 0, length)) return why;
    at += length;
  }
  return nullptr;
}

}  // namespace plmcore::cuda
