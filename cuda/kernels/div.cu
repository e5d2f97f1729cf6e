#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Div {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    return a / b;
  }
};
}  // namespace

PLM_KERNEL(div) { return float_map2(args, Div{}); }

}  // namespace plmcore::cuda
