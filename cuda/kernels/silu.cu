// dx = dy s (1 + x (1 - s)),  s = sigmoid(x)
#include "device/activation.cuh"
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Silu {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return silu(x);
  }
};
struct SiluGrad {
  template <class A>
  __device__ __forceinline__ A operator()(A x, A dy) const {
    return dy * silu_slope(x);
  }
};
}  // namespace

PLM_KERNEL(silu) { return float_map1(args, Silu{}); }
PLM_KERNEL(silu_grad) { return float_grad(args, SiluGrad{}); }

}  // namespace plmcore::cuda
