#include "device/arithmetic.cuh"

namespace plmcore::cuda {

namespace {
struct Add {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    return unsigned_of(a) + unsigned_of(b);
  }
};
}  // namespace

PLM_KERNEL(add) { return arithmetic2(args, Add{}); }

}  // namespace plmcore::cuda
