#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Log {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return std::log(x);
  }
};
}  // namespace

PLM_KERNEL(log) { return float_map1(args, Log{}); }

}  // namespace plmcore::cuda
