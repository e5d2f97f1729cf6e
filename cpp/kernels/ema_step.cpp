// 8 bytes read and 4 written per float parameter.
#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

template <class T, class A>
static void run(const KernelArgs& args) {
  constexpr int W = Lane<T>::n;
  A* average = args.in[0].as<A>();
  const T* param = args.in[1].as<T>();
  const auto weight = static_cast<typename Lane<T>::Scalar>(1 - args.f("decay"));
  for_chunks(args.in[0].numel, kGrain, [&](int64_t i, int64_t e) {
    for (; i + W <= e; i += W) {
      const auto a = load(average + i);
      store(average + i, a + (load(param + i) - a) * weight);
    }
    if (i == e) return;
    const int rest = static_cast<int>(e - i);
    const auto a = load_part(average + i, rest);
    store_part(average + i, a + (load_part(param + i, rest) - a) * weight, rest);
  });
}

PLM_KERNEL(ema_step) {
  for_float("ema_step", args.in[1].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (args.in[0].dtype == args.in[1].dtype) run<T, T>(args);
    else if constexpr (sizeof(T) == 2) run<T, float>(args);
  });
}

}  // namespace plmcore::PLM_ISA
