// y = scale * x + shift.
#include "device/arithmetic.cuh"

namespace plmcore::cuda {

namespace {
template <class A>
struct Affine {
  A scale, shift;
  __device__ __forceinline__ A operator()(A x) const {
    return static_cast<A>(unsigned_of(x) * unsigned_of(scale) + unsigned_of(shift));
  }
};
}  // namespace

PLM_KERNEL(affine) {
  const double scale = args.f("scale"), shift = args.f("shift");
  return for_any(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    if constexpr (std::is_integral_v<T>)
      return elementwise_equal<T, T>(args, args.out[0], args.in,
                                     Affine<A>{static_cast<A>(static_cast<int64_t>(scale)),
                                               static_cast<A>(static_cast<int64_t>(shift))});
    else
      return elementwise_equal<T, T>(args, args.out[0], args.in,
                                     Affine<A>{static_cast<A>(scale), static_cast<A>(shift)});
  });
}

}  // namespace plmcore::cuda
