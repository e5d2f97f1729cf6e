#include "kernels/kernel.h"
#include "kernels/wrap.h"

namespace plmcore::PLM_ISA {

struct Bool {
  uint8_t value;
};

template <class F>
PLM_INLINE void for_any(DType t, F f) {
  switch (t) {
    case DType::float64: return f(Type<double>{});
    case DType::float32: return f(Type<float>{});
    case DType::bfloat16: return f(Type<bf16>{});
    case DType::float16: return f(Type<f16>{});
    case DType::int64: return f(Type<int64_t>{});
    case DType::int32: return f(Type<int32_t>{});
    case DType::int8: return f(Type<int8_t>{});
    case DType::uint8: return f(Type<uint8_t>{});
    case DType::boolean: return f(Type<Bool>{});
  }
}
template <class T>
PLM_INLINE auto value_of(T x) {
  if constexpr (std::is_same_v<T, Bool>) return x.value != 0;
  else if constexpr (std::is_integral_v<T>) return x;
  else return to_float(x);
}
template <class T, class A>
PLM_INLINE T convert(A x) {
  if constexpr (std::is_same_v<T, Bool>) return {static_cast<uint8_t>(x != 0)};
  else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<A>) return whole_of<T>(x);
  else return from_float<T>(x);
}

PLM_KERNEL(cast) {
  for_any(args.in[0].dtype, [&](auto from) {
    for_any(args.out[0].dtype, [&](auto to) {
      using A = typename decltype(from)::type;
      using R = typename decltype(to)::type;
      const A* x = args.in[0].as<A>();
      R* y = args.out[0].as<R>();
      for_chunks(args.out[0].numel, kGrain, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) y[i] = convert<R>(value_of(x[i]));
      });
    });
  });
}

}  // namespace plmcore::PLM_ISA
