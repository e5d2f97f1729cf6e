#include "device/arithmetic.cuh"

namespace plmcore::cuda {

namespace {
struct GreaterEqual {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    return a >= b;
  }
};
}  // namespace

PLM_KERNEL(greater_equal) { return compare2(args, GreaterEqual{}); }

}  // namespace plmcore::cuda
