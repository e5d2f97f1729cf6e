#include "kernels/elementwise.h"
#include "kernels/wrap.h"

namespace plmcore::PLM_ISA {

template <class T>
static void whole(const KernelArgs& args) {
  const T *x = args.in[0].as<T>(), scale = static_cast<T>(static_cast<int64_t>(args.f("scale"))),
          shift = static_cast<T>(static_cast<int64_t>(args.f("shift")));
  T* y = args.out[0].as<T>();
  for_chunks(args.out[0].numel, kGrain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      y[i] = static_cast<T>(unsigned_of(x[i]) * unsigned_of(scale) + unsigned_of(shift));
  });
}

PLM_KERNEL(affine) {
  switch (args.out[0].dtype) {
    case DType::int64: return whole<int64_t>(args);
    case DType::int32: return whole<int32_t>(args);
    case DType::int8: return whole<int8_t>(args);
    case DType::uint8: return whole<uint8_t>(args);
    default: break;
  }
  const double scale = args.f("scale"), shift = args.f("shift");
  map1("affine", args, [=](auto x) __attribute__((always_inline)) {
    using S = std::remove_reference_t<decltype(x[0])>;
    return x * static_cast<S>(scale) + static_cast<S>(shift);
  });
}

}  // namespace plmcore::PLM_ISA
