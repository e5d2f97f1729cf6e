#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

template <class T>
static void count(const View& y, int64_t start) {
  for_chunks(y.numel, kGrain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      if constexpr (std::is_integral_v<T>) y.as<T>()[i] = static_cast<T>(start + i);
      else y.as<T>()[i] = from_float<T>(static_cast<double>(start + i));
    }
  });
}

PLM_KERNEL(arange) {
  const View& y = args.out[0];
  const int64_t start = args.dim("start");
  switch (y.dtype) {
    case DType::int64: return count<int64_t>(y, start);
    case DType::int32: return count<int32_t>(y, start);
    case DType::int8: return count<int8_t>(y, start);
    case DType::uint8: return count<uint8_t>(y, start);
    default: for_float("arange", y.dtype, [&](auto type) { count<typename decltype(type)::type>(y, start); });
  }
}

}  // namespace plmcore::PLM_ISA
