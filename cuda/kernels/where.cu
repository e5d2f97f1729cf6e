#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Where {
  template <class T>
  __device__ __forceinline__ T operator()(uint8_t c, T a, T b) const {
    return c ? a : b;
  }
};
}  // namespace

PLM_KERNEL(where) {
  return for_bytes(args.out[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise<T, uint8_t, T, T>(args, args.out[0], args.in, Where{});
  });
}

}  // namespace plmcore::cuda
