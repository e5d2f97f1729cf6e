#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
struct Exp {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return std::exp(x);
  }
};
}  // namespace

PLM_KERNEL(exp) { return float_map1(args, Exp{}); }

}  // namespace plmcore::cuda
