#include "kernels/move.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(split) {
  const View& x = args.in[0];
  const int axis = static_cast<int>(args.i("axis"));
  const int64_t outer = x.outer(axis), unit = x.inner(axis) * static_cast<int64_t>(size_of(x.dtype)),
                stride = x.size[axis] * unit;
  for_parts(outer, unit, axis, args.out, args.n_out,
            [&](int k, int64_t bytes, int64_t at, int64_t first, int64_t rows) {
              copy_rows(rows, bytes, args.out[k].as<char>() + first * bytes, bytes,
                        x.as<char>() + first * stride + at, stride);
            });
}

}  // namespace plmcore::PLM_ISA
