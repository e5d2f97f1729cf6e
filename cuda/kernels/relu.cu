// dx = dy where y > 0
#include "device/activation.cuh"
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Relu {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return relu(x);
  }
};
struct ReluGrad {
  template <class A>
  __device__ __forceinline__ A operator()(A y, A dy) const {
    return y > 0 ? dy : dy * 0;
  }
};
}  // namespace

PLM_KERNEL(relu) { return float_map1(args, Relu{}); }
PLM_KERNEL(relu_grad) { return float_grad(args, ReluGrad{}); }

}  // namespace plmcore::cuda
