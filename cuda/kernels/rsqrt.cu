// dx = -dy y^3 / 2
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Rsqrt {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return 1 / std::sqrt(x);
  }
};
struct RsqrtGrad {
  template <class A>
  __device__ __forceinline__ A operator()(A y, A dy) const {
    return dy * (y * y) * (y * A(-0.5));
  }
};
}  // namespace

PLM_KERNEL(rsqrt) { return float_map1(args, Rsqrt{}); }
PLM_KERNEL(rsqrt_grad) { return float_grad(args, RsqrtGrad{}); }

}  // namespace plmcore::cuda
