#include "kernels/select.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(masked_fill) {
  const View& x = args.in[0];
  const double v = args.f("value");
  const View in[3] = {args.in[1], View{.rank = 0}, x};  // the value is a tensor without axes
  const auto fill = [&](auto value) {
    using T = decltype(value);
    select<T>(args.out[0], in, &value, x.as<T>());
  };
  switch (x.dtype) {
    case DType::float64: return fill(v);
    case DType::float32: return fill(static_cast<float>(v));
    case DType::bfloat16: return fill(from_float<bf16>(v));
    case DType::float16: return fill(from_float<f16>(v));
    case DType::int64: return fill(static_cast<int64_t>(v));
    case DType::int32: return fill(static_cast<int32_t>(v));
    case DType::int8: return fill(static_cast<int8_t>(v));
    case DType::uint8: return fill(static_cast<uint8_t>(v));
    case DType::boolean: return fill(static_cast<uint8_t>(v != 0));
  }
}

}  // namespace plmcore::PLM_ISA
