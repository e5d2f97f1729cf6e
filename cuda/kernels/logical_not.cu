#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct LogicalNot {
  __device__ __forceinline__ uint8_t operator()(uint8_t a) const { return static_cast<uint8_t>(a ^ 1); }
};
}  // namespace

PLM_KERNEL(logical_not) { return elementwise<uint8_t, uint8_t>(args, args.out[0], args.in, LogicalNot{}); }

}  // namespace plmcore::cuda
