// Rows of x that a test picks: their numbers first, in order, then the rows.
#pragma once

#include "kernels/move.h"

namespace plmcore::PLM_ISA {

// index = the r in [0, n) with chosen(r); the output was sized by the same test.
template <class F>
PLM_INLINE void write_index(const View& index, int64_t n, F chosen) {
  int64_t* to = index.as<int64_t>();
  int64_t count = 0;
  for (int64_t r = 0; r < n && count < index.numel; ++r)
    if (chosen(r)) to[count++] = r;
}
// y[k] = x[index[k]]
PLM_INLINE void copy_chosen(const View& x, const View& index, const View& y, int64_t bytes) {
  const int64_t* from = index.as<int64_t>();
  for_chunks(index.numel, rows_per_task(bytes), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k)
      copy_some(1, bytes, y.as<char>() + k * bytes, bytes, x.as<char>() + from[k] * bytes, bytes);
  });
}

}  // namespace plmcore::PLM_ISA
