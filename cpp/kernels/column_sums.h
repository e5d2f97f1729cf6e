// Column sums: partial sums of row chunks, which are then added in order.
#pragma once

#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

// The workspace of `sums` column sums over the rows of input 0.
static inline Workspace column_sums(const KernelArgs& args, int64_t sums) {
  const View& x = args.in[0];
  return {.shared = static_cast<size_t>(row_chunks(x.rows()) * sums * x.last()) *
                    (x.dtype == DType::float64 ? 8 : 4)};
}

// out[c] = sum over k of part[k * stride + c], c in [0, width)
template <class T, class A>
PLM_INLINE void add_chunks(const A* part, int64_t chunks, int64_t stride, int64_t width, T* out) {
  for_chunks(width, 512, [&](int64_t b, int64_t e) {
    A sum[512];
    for (int64_t c = b; c < e; ++c) sum[c - b] = 0;
    for (int64_t k = 0; k < chunks; ++k) {
      const A* row = part + k * stride;
      for (int64_t c = b; c < e; ++c) sum[c - b] += row[c];
    }
    for (int64_t c = b; c < e; ++c) out[c] = from_float<T>(sum[c - b]);
  });
}

}  // namespace plmcore::PLM_ISA
