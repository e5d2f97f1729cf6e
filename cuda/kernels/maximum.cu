// The comparison picks b where b is NaN; a NaN in a is put back.
#include "device/arithmetic.cuh"

namespace plmcore::cuda {

namespace {
struct Maximum {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    const A y = a > b ? a : b;
    return a != a ? a : y;
  }
};
}  // namespace

PLM_KERNEL(maximum) { return arithmetic2(args, Maximum{}); }

}  // namespace plmcore::cuda
