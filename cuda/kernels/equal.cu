#include "device/arithmetic.cuh"

namespace plmcore::cuda {

namespace {
struct Equal {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    return a == b;
  }
};
}  // namespace

PLM_KERNEL(equal) { return compare2(args, Equal{}); }

}  // namespace plmcore::cuda
