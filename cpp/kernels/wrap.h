// Whole numbers beyond their range. Sums and products wrap around, as in NumPy: they are computed without
// sign, where that is defined. A float out of range becomes the smallest number, which is what the processor
// makes of it.
#pragma once

#include <limits>
#include <type_traits>

#include "kernels/simd.h"

namespace plmcore::PLM_ISA {

// Floats and vectors stay as they are.
template <class T>
PLM_INLINE auto unsigned_of(T x) {
  if constexpr (std::is_integral_v<T>) return static_cast<std::make_unsigned_t<T>>(x);
  else return x;
}

// The short types are cut from 32 bits.
template <class T, class A>
PLM_INLINE T whole_of(A x) {
  using I = std::conditional_t<(sizeof(T) < 8), int32_t, int64_t>;
  constexpr A limit = -static_cast<A>(std::numeric_limits<I>::min());
  return static_cast<T>(x >= -limit && x < limit ? static_cast<I>(x) : std::numeric_limits<I>::min());
}

}  // namespace plmcore::PLM_ISA
