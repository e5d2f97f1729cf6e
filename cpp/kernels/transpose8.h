// Eight rows of eight 32-bit lanes change places with their columns, in registers.
#pragma once

#include "kernels/simd.h"

namespace plmcore::PLM_ISA {

typedef int32_t v8 __attribute__((vector_size(32)));

template <class V>
PLM_INLINE void transpose8(V r[8]) {
  static_assert(sizeof(V) == 32);
  V t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = __builtin_shuffle(r[i], r[i + 1], v8{0, 8, 1, 9, 4, 12, 5, 13});
    t[i + 1] = __builtin_shuffle(r[i], r[i + 1], v8{2, 10, 3, 11, 6, 14, 7, 15});
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      u[i + 2 * j] = __builtin_shuffle(t[i + j], t[i + j + 2], v8{0, 1, 8, 9, 4, 5, 12, 13});
      u[i + 2 * j + 1] = __builtin_shuffle(t[i + j], t[i + j + 2], v8{2, 3, 10, 11, 6, 7, 14, 15});
    }
  for (int j = 0; j < 4; ++j) {
    r[j] = __builtin_shuffle(u[j], u[j + 4], v8{0, 1, 2, 3, 8, 9, 10, 11});
    r[j + 4] = __builtin_shuffle(u[j], u[j + 4], v8{4, 5, 6, 7, 12, 13, 14, 15});
  }
}

}  // namespace plmcore::PLM_ISA
