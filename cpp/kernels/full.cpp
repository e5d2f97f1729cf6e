#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

template <class T>
static void fill(const View& y, T value) {
  for_chunks(y.numel, kGrain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) y.as<T>()[i] = value;
  });
}

PLM_KERNEL(full) {
  const View& y = args.out[0];
  const double v = args.f("value");
  switch (y.dtype) {
    case DType::float64: return fill<double>(y, v);
    case DType::float32: return fill<float>(y, static_cast<float>(v));
    case DType::bfloat16: return fill<bf16>(y, from_float<bf16>(v));
    case DType::float16: return fill<f16>(y, from_float<f16>(v));
    case DType::int64: return fill<int64_t>(y, static_cast<int64_t>(v));
    case DType::int32: return fill<int32_t>(y, static_cast<int32_t>(v));
    case DType::int8: return fill<int8_t>(y, static_cast<int8_t>(v));
    case DType::uint8: return fill<uint8_t>(y, static_cast<uint8_t>(v));
    case DType::boolean: return fill<uint8_t>(y, v != 0);
  }
}

}  // namespace plmcore::PLM_ISA
