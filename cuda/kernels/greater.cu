#include "device/arithmetic.cuh"

namespace plmcore::cuda {

namespace {
struct Greater {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    return a > b;
  }
};
}  // namespace

PLM_KERNEL(greater) { return compare2(args, Greater{}); }

}  // namespace plmcore::cuda
