// Two passes (device/square_sums.cuh). The first moves the moments (16 bytes read, 8 written per float
// parameter) and sums the squares of param and update; the second computes the update again (12 read, 4
// written) rather than keep it.
#include <cmath>

#include "device/square_sums.cuh"

namespace plmcore::cuda {

namespace {
template <class T>
struct Lamb {
  using A = Acc<T>;
  T* p;
  const T* g;
  A *m, *v;
  const float* scale;
  A decay, one_minus_beta1, beta2, one_minus_beta2, gain, root_scale, eps;
  double lr;
  bool adapt;

  __device__ __forceinline__ A update(A vp, A vm, A vv) const {
    return vm * gain / (std::sqrt(vv) * root_scale + eps) + vp * decay;
  }
  __device__ __forceinline__ void add(int64_t i, double (&sums)[2]) const {
    const A vp = widen(p[i]), vg = widen(g[i]) * (scale ? static_cast<A>(*scale) : A(1));
    const A vm = m[i] + (vg - m[i]) * one_minus_beta1, vv = v[i] * beta2 + vg * vg * one_minus_beta2;
    m[i] = vm;
    v[i] = vv;
    const A u = update(vp, vm, vv);
    sums[0] += static_cast<double>(vp) * vp;
    sums[1] += static_cast<double>(u) * u;
  }
  __device__ __forceinline__ double rate(const double (&sums)[2]) const {
    return adapt && sums[0] > 0 && sums[1] > 0 ? lr * std::sqrt(sums[0] / sums[1]) : lr;
  }
  __device__ __forceinline__ void step(int64_t i, A length) const {
    const A vp = widen(p[i]);
    p[i] = narrow<T>(vp - update(vp, m[i], v[i]) * length);
  }
};
}  // namespace

static Workspace workspace(const KernelArgs& args) { return {.shared = square_bytes(args.in[0].numel)}; }

PLM_KERNEL(lamb_step, workspace) {
  const double beta1 = args.f("beta1"), beta2 = args.f("beta2"), decay = args.f("weight_decay");
  const auto step = static_cast<double>(args.i("step"));
  const bool adapt = args.i("adapt", decay != 0) != 0;
  const double c1 = step > 0 ? 1 - std::pow(beta1, step) : 1, c2 = step > 0 ? 1 - std::pow(beta2, step) : 1;
  return for_float(args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Acc<T>;
    const Lamb<T> op{args.in[0].as<T>(),
                     args.in[1].as<T>(),
                     args.in[2].as<A>(),
                     args.in[3].as<A>(),
                     args.has(4) ? args.in[4].as<float>() : nullptr,
                     A(decay),
                     A(1 - beta1),
                     A(beta2),
                     A(1 - beta2),
                     A(1 / c1),
                     A(1 / std::sqrt(c2)),
                     A(args.f("eps")),
                     args.f("lr"),
                     adapt};
    return step_by_size<A>(args, op, args.in[0].numel, args.shared);
  });
}

}  // namespace plmcore::cuda
