// dx = dy (1 - y^2)
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Tanh {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return std::tanh(x);
  }
};
struct TanhGrad {
  template <class A>
  __device__ __forceinline__ A operator()(A y, A dy) const {
    return dy * (1 - y * y);
  }
};
}  // namespace

PLM_KERNEL(tanh) { return float_map1(args, Tanh{}); }
PLM_KERNEL(tanh_grad) { return float_grad(args, TanhGrad{}); }

}  // namespace plmcore::cuda
