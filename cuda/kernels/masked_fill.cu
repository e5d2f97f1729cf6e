#include "device/bits.h"
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
template <class T>
struct Fill {
  T value;
  __device__ __forceinline__ T operator()(T x, uint8_t masked) const { return masked ? value : x; }
};
}  // namespace

PLM_KERNEL(masked_fill) {
  const uint64_t bits = element_bits(args.f("value"), args.out[0].dtype);
  return for_bytes(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise<T, T, uint8_t>(args, args.out[0], args.in, Fill<T>{static_cast<T>(bits)});
  });
}

}  // namespace plmcore::cuda
