// An input is `outer` rows of its part of the axis times what is inside; each goes to its place in the
// output's rows.
#include "kernels/move.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(concat) {
  const View& y = args.out[0];
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t outer = y.outer(axis), unit = y.inner(axis) * static_cast<int64_t>(size_of(y.dtype)),
                stride = y.size[axis] * unit;
  for_parts(outer, unit, axis, args.in, args.n_in,
            [&](int k, int64_t bytes, int64_t at, int64_t first, int64_t rows) {
              copy_rows(rows, bytes, y.as<char>() + first * stride + at, stride,
                        args.in[k].as<char>() + first * bytes, bytes);
            });
}

}  // namespace plmcore::PLM_ISA
