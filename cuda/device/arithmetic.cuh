// Broadcasting arithmetic and comparisons. Sums and products of whole numbers wrap around, as on the CPU.
#pragma once

#include <type_traits>

#include "device/elementwise.cuh"

namespace plmcore::cuda {

// Floats stay as they are.
template <class T>
__device__ __forceinline__ auto unsigned_of(T x) {
  if constexpr (std::is_integral_v<T>) return static_cast<std::make_unsigned_t<T>>(x);
  else return x;
}

template <class F>
const char* arithmetic2(const KernelArgs& args, F f) {
  return for_any(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise<T, T, T>(args, args.out[0], args.in, f);
  });
}
// y = f(a, b) as bool.
template <class F>
const char* compare2(const KernelArgs& args, F f) {
  return for_any(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise<uint8_t, T, T>(args, args.out[0], args.in, f);
  });
}

}  // namespace plmcore::cuda
