// Floats out of range of a whole number become the smallest one, as on the CPU; the short types are cut from
// 32 bits.
#include <type_traits>

#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
template <class R, bool kBool>
struct Convert {
  template <class A>
  __device__ __forceinline__ Acc<R> operator()(A x) const {
    if constexpr (kBool) return x != 0;
    else if constexpr (std::is_integral_v<R> && std::is_floating_point_v<A>) {
      using I = std::conditional_t<(sizeof(R) < 8), int32_t, int64_t>;
      constexpr I least = static_cast<I>(std::make_unsigned_t<I>(1) << (8 * sizeof(I) - 1));
      constexpr A limit = -static_cast<A>(least);
      return static_cast<R>(x >= -limit && x < limit ? static_cast<I>(x) : least);
    } else return static_cast<Acc<R>>(x);
  }
};

// A bool may hold any byte: it is read as 0 or 1.
template <class R, bool kBool>
struct ConvertBool {
  __device__ __forceinline__ Acc<R> operator()(uint8_t x) const {
    return Convert<R, kBool>{}(static_cast<uint8_t>(x != 0));
  }
};
}  // namespace

PLM_KERNEL(cast) {
  const View &x = args.in[0], &y = args.out[0];
  return for_any(x.dtype, [&](auto from) {
    using A = typename decltype(from)::type;
    if (y.dtype == DType::boolean)
      return elementwise_equal<uint8_t, A>(args, y, args.in, Convert<uint8_t, true>{});
    return for_any(y.dtype, [&](auto to) {
      using R = typename decltype(to)::type;
      if constexpr (std::is_same_v<A, uint8_t>)
        if (x.dtype == DType::boolean)
          return elementwise_equal<R, A>(args, y, args.in, ConvertBool<R, false>{});
      return elementwise_equal<R, A>(args, y, args.in, Convert<R, false>{});
    });
  });
}

}  // namespace plmcore::cuda
