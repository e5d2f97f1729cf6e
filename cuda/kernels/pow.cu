#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Pow {
  template <class A>
  __device__ __forceinline__ auto operator()(A a, A b) const {
    return std::pow(a, b);
  }
};
}  // namespace

PLM_KERNEL(pow) { return float_map2(args, Pow{}); }

}  // namespace plmcore::cuda
