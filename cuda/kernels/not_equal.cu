#include "device/arithmetic.cuh"

namespace plmcore::cuda {

namespace {
struct NotEqual {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    return a != b;
  }
};
}  // namespace

PLM_KERNEL(not_equal) { return compare2(args, NotEqual{}); }

}  // namespace plmcore::cuda
