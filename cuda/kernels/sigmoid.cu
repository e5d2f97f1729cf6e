// dx = dy y (1 - y)
#include "device/activation.cuh"
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Sigmoid {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return sigmoid(x);
  }
};
struct SigmoidGrad {
  template <class A>
  __device__ __forceinline__ A operator()(A y, A dy) const {
    return dy * y * (1 - y);
  }
};
}  // namespace

PLM_KERNEL(sigmoid) { return float_map1(args, Sigmoid{}); }
PLM_KERNEL(sigmoid_grad) { return float_grad(args, SigmoidGrad{}); }

}  // namespace plmcore::cuda
