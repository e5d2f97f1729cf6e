// average += (1 - decay) (param - average), in place: 8 bytes read and 4 written per float parameter.
#include "device/elementwise.cuh"

namespace plmcore::cuda {

namespace {
template <class A>
struct Towards {
  A weight;
  __device__ __forceinline__ A operator()(A average, A param) const {
    return average + (param - average) * weight;
  }
};
}  // namespace

PLM_KERNEL(ema_step) {
  const View &average = args.in[0], &param = args.in[1];
  return for_float(param.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Towards<Acc<T>> f{static_cast<Acc<T>>(1 - args.f("decay"))};
    if (average.dtype == param.dtype) return elementwise_equal<T, T, T>(args, average, args.in, f);
    return elementwise_equal<Acc<T>, Acc<T>, T>(args, average, args.in, f);
  });
}

}  // namespace plmcore::cuda
