// The sorted, unique rows of a row-sparse gradient.
#pragma once

#include "core/fault.h"
#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

// Inside of V, and increasing: a repeated row would be stepped twice.
static inline void check_rows(ops::Id op, const View& rows, int64_t V) {
  const int64_t* p = rows.as<int64_t>();
  for (int64_t k = 0; k < rows.numel; ++k) {
    const bool outside = p[k] < 0 || p[k] >= V;
    if (!outside && (k == 0 || p[k] > p[k - 1])) continue;
    Fault fault = fault_in(op, rows);
    fault.error = outside ? DataError::row : DataError::row_order;
    fault.value = p[k];
    fault.limit = outside ? V : p[k - 1];
    fault.at = k;
    raise(fault);
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
