// The sorted, unique rows of a row-sparse gradient.
#pragma once

#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

PLM_INLINE void check_rows(const char* op, const int64_t* rows, int64_t n, int64_t V) {
  for (int64_t k = 0; k < n; ++k) {
    if (rows[k] < 0 || rows[k] >= V)
      fail<IndexError>(op, ": row ", rows[k], " at position ", k, " is out of range for ", V, " rows");
    if (k > 0 && rows[k] <= rows[k - 1])
      fail<ValueError>(op, ": rows must be sorted and unique, got ", rows[k - 1], " before ", rows[k]);
  }
}
// The first k with rows[k] >= row.
PLM_INLINE int64_t first_row(const int64_t* rows, int64_t n, int64_t row) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t mid = (low + high) / 2;
    if (rows[mid] < row) low = mid + 1;
    else high = mid;
  }
  return low;
}

// y[rows[k]] = values[k], zeros elsewhere; y has V rows of `bytes` bytes. Blocks of rows: zeros, then the
// given rows among them. One write of y.
PLM_INLINE void place_rows(const int64_t* rows, int64_t n, const char* values, char* y, int64_t V,
                           int64_t bytes) {
  for_rows(V, bytes / 4, [&](int64_t b, int64_t e) {
    std::memset(y + b * bytes, 0, static_cast<size_t>((e - b) * bytes));
    for (int64_t k = first_row(rows, n, b); k < n && rows[k] < e; ++k)
      std::memcpy(y + rows[k] * bytes, values + k * bytes, static_cast<size_t>(bytes));
  });
}

}  // namespace plmcore::PLM_ISA
