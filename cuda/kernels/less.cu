#include "device/arithmetic.cuh"

namespace plmcore::cuda {

namespace {
struct Less {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    return a < b;
  }
};
}  // namespace

PLM_KERNEL(less) { return compare2(args, Less{}); }

}  // namespace plmcore::cuda
