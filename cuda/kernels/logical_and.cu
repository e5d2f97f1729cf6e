#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct LogicalAnd {
  __device__ __forceinline__ uint8_t operator()(uint8_t a, uint8_t b) const {
    return static_cast<uint8_t>(a & b);
  }
};
}  // namespace

PLM_KERNEL(logical_and) {
  return elementwise<uint8_t, uint8_t, uint8_t>(args, args.out[0], args.in, LogicalAnd{});
}

}  // namespace plmcore::cuda
