// An input is `outer` rows of its part of the axis times what is inside; a launch takes one input.
#include "device/move.cuh"

namespace plmcore::cuda {

PLM_KERNEL(concat) {
  const View& y = args.out[0];
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t outer = y.outer(axis), inner = y.inner(axis), stride = y.size[axis] * inner;
  int64_t at = 0;
  for (int k = 0; k < args.n_in; ++k) {
    const int64_t length = args.in[k].size[axis] * inner;
    if (const char* why = move_rows(args, outer, length, args.in[k], 0, length, y, at, stride)) return why;
    at += length;
  }
  return nullptr;
}

}  // namespace plmcore::cuda
