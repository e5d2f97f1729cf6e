// Backward: dx = dy / n, repeated over the axes of the mean.
#include "device/elementwise.cuh"
#include "device/sums.cuh"

namespace plmcore::cuda {

static SumPlan plan_of(const KernelArgs& args) {
  return SumPlan(args.in[0], static_cast<uint32_t>(args.i("axes")));
}
static Workspace workspace(const KernelArgs& args) { return {.shared = plan_of(args).workspace()}; }

PLM_KERNEL(mean, workspace) {
  const int64_t outputs = args.out[0].numel ? args.out[0].numel : 1;
  const double n = static_cast<double>(args.in[0].numel) / static_cast<double>(outputs);
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return sum_over<T, T>(args, plan_of(args), 1 / n);
  });
}

namespace {
template <class A>
struct Scaled {
  A factor;
  __device__ __forceinline__ A operator()(A x) const { return x * factor; }
};
}  // namespace

PLM_KERNEL(mean_grad) {
  const View &dy = args.in[0], &dx = args.out[0];
  if (dx.numel == 0) return nullptr;
  const double factor = static_cast<double>(dy.numel) / static_cast<double>(dx.numel);
  return for_float(dx.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return elementwise<T, T>(args, dx, args.in, Scaled<Acc<T>>{static_cast<Acc<T>>(factor)});
  });
}

}  // namespace plmcore::cuda
