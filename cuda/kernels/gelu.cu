// x P(x) with P the normal distribution function, or its tanh form. One kernel for each form: no choice
// within.
#include "device/activation.cuh"
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
template <bool kTanhForm>
struct Gelu {
  template <class A>
  __device__ __forceinline__ A operator()(A x) const {
    return kTanhForm ? gelu_tanh(x) : gelu(x);
  }
};
template <bool kTanhForm>
struct GeluGrad {
  template <class A>
  __device__ __forceinline__ A operator()(A x, A dy) const {
    return dy * (kTanhForm ? gelu_tanh_slope(x) : gelu_slope(x));
  }
};
}  // namespace

PLM_KERNEL(gelu) {
  return args.i("tanh_form") ? float_map1(args, Gelu<true>{}) : float_map1(args, Gelu<false>{});
}
PLM_KERNEL(gelu_grad) {
  return args.i("tanh_form") ? float_grad(args, GeluGrad<true>{}) : float_grad(args, GeluGrad<false>{});
}

}  // namespace plmcore::cuda
