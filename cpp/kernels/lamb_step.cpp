// Two passes. The first moves the moments (16 bytes read, 8 written per float parameter) and sums the squares
// of param and update, in pieces that depend on the size alone; the second computes the update again (12
// read, 4 written) rather than keep it.
#include "kernels/kernel.h"
#include "kernels/math.h"
#include "kernels/pieces.h"

namespace plmcore::PLM_ISA {

namespace {
template <class A>
struct LambRule {
  A decay, one_minus_beta1, beta2, one_minus_beta2, gain, root_scale, eps;

  template <class V>
  PLM_INLINE V update(V p, V m, V v) const {
    return m * gain / (sqrt(v) * root_scale + eps) + p * decay;
  }
};

template <class T, class A = typename Lane<T>::Scalar>
void run_lamb(const KernelArgs& args, const LambRule<A>& rule, double lr, bool adapt) {
  constexpr int W = Lane<T>::n;
  T* p = args.in[0].as<T>();
  const T* g = args.in[1].as<T>();
  A *m = args.in[2].as<A>(), *v = args.in[3].as<A>();
  const A scale = args.has(4) ? static_cast<A>(*args.in[4].as<float>()) : A(1);
  const int64_t n = args.in[0].numel;

  const Sums squares = sum_pieces(n, [&](int64_t b, int64_t e) __attribute__((always_inline)) {
    Squares<T> of_param, of_update;
    for (int64_t i = b; i < e; i += W) {
      const int k = e - i < W ? static_cast<int>(e - i) : W;
      const auto vp = load_first(p + i, k), vg = load_first(g + i, k) * scale;
      auto vm = load_first(m + i, k), vv = load_first(v + i, k);
      vm = vm + (vg - vm) * rule.one_minus_beta1;
      vv = vv * rule.beta2 + vg * vg * rule.one_minus_beta2;
      store_first(m + i, vm, k);
      store_first(v + i, vv, k);
      of_param.add(vp, k);
      of_update.add(rule.update(vp, vm, vv), k);
    }
    return Sums{of_param.sum(), of_update.sum()};
  });
  const bool adapted = adapt && squares.a > 0 && squares.b > 0;
  const A rate = static_cast<A>(adapted ? lr * std::sqrt(squares.a / squares.b) : lr);
  for_chunks(n, kGrain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; i += W) {
      const int k = e - i < W ? static_cast<int>(e - i) : W;
      const auto vp = load_first(p + i, k);
      store_first(p + i, vp - rule.update(vp, load_first(m + i, k), load_first(v + i, k)) * rate, k);
    }
  });
}
}  // namespace

PLM_KERNEL(lamb_step) {
  const double beta1 = args.f("beta1"), beta2 = args.f("beta2");
  const auto step = static_cast<double>(args.i("step"));
  const bool adapt = args.i("adapt", args.f("weight_decay") != 0) != 0;
  const double c1 = step > 0 ? 1 - std::pow(beta1, step) : 1, c2 = step > 0 ? 1 - std::pow(beta2, step) : 1;
  for_float("lamb_step", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    const LambRule<A> rule{A(args.f("weight_decay")), A(1 - beta1),    A(beta2), A(1 - beta2), A(1 / c1),
                           A(1 / std::sqrt(c2)),      A(args.f("eps"))};
    run_lamb<T>(args, rule, args.f("lr"), adapt);
  });
}

}  // namespace plmcore::PLM_ISA
