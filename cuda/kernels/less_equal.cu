#include "device/arithmetic.cuh"

namespace plmcore::cuda {

namespace {
struct LessEqual {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    return a <= b;
  }
};
}  // namespace

PLM_KERNEL(less_equal) { return compare2(args, LessEqual{}); }

}  // namespace plmcore::cuda
