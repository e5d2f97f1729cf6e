// dx = dy / (2 y)
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Sqrt {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return std::sqrt(x);
  }
};
struct SqrtGrad {
  template <class A>
  __device__ __forceinline__ A operator()(A y, A dy) const {
    return dy / (2 * y);
  }
};
}  // namespace

PLM_KERNEL(sqrt) { return float_map1(args, Sqrt{}); }
PLM_KERNEL(sqrt_grad) { return float_grad(args, SqrtGrad{}); }

}  // namespace plmcore::cuda
