// dx = dy sign(x)
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Abs {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return std::fabs(x);
  }
};
struct AbsGrad {
  template <class A>
  __device__ __forceinline__ A operator()(A x, A dy) const {
    return x > 0 ? dy : x < 0 ? -dy : x * 0;
  }
};
}  // namespace

PLM_KERNEL(abs) { return float_map1(args, Abs{}); }
PLM_KERNEL(abs_grad) { return float_grad(args, AbsGrad{}); }

}  // namespace plmcore::cuda
