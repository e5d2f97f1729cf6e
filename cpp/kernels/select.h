// y = c ? a : b with broadcasting; shared by where and masked_fill.
#pragma once

#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

// Strides of a and b, 0 or 1, are template arguments and both values are read whatever the condition: the
// loops become vector code for every mix of rows and single values, with no branch to mispredict.
template <int SA, int SB, class T>
PLM_INLINE void select_row(const uint8_t* __restrict__ c, const T* __restrict__ a, const T* __restrict__ b,
                           T* __restrict__ y, int64_t n) {
  const T a0 = *a, b0 = *b;
  for (int64_t i = 0; i < n; ++i) {
    const T u = SA ? a[i] : a0, v = SB ? b[i] : b0;
    y[i] = c[i] ? u : v;
  }
}

// `in` gives the shapes of c, a and b.
template <class T>
static void select(const View& out, const View* in, const T* a, const T* b) {
  if (out.numel == 0) return;
  const Broadcast<3> bc(out, in);
  const uint8_t* c = in[0].as<uint8_t>();
  T* y = out.as<T>();
  const int64_t sc = bc.stride[0][0], sa = bc.stride[1][0], sb = bc.stride[2][0];
  over_segments(bc, [&](const int64_t* at, int64_t to, int64_t n) {
    const auto* pc = c + at[0];
    const T *pa = a + at[1], *pb = b + at[2];
    if (!sc) {  // one condition for the whole run
      const T* from = *pc ? pa : pb;
      const int64_t step = *pc ? sa : sb;
      for (int64_t i = 0; i < n; ++i) y[to + i] = from[i * step];
    } else if (sa && sb) select_row<1, 1>(pc, pa, pb, y + to, n);
    else if (sa) select_row<1, 0>(pc, pa, pb, y + to, n);
    else if (sb) select_row<0, 1>(pc, pa, pb, y + to, n);
    else select_row<0, 0>(pc, pa, pb, y + to, n);
  });
}

}  // namespace plmcore::PLM_ISA
