#include "device/bits.h"
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
template <class T>
struct Same {
  T value;
  __device__ __forceinline__ T operator()() const { return value; }
};
}  // namespace

PLM_KERNEL(full) {
  const uint64_t bits = element_bits(args.f("value"), args.out[0].dtype);
  return for_bytes(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise_equal<T>(args, args.out[0], args.in, Same<T>{static_cast<T>(bits)});
  });
}

}  // namespace plmcore::cuda
