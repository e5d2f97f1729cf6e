// Broadcasting arithmetic on any dtype: vectors for floats, scalars for integers and bool.
#pragma once

#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

template <class F>
PLM_INLINE void arithmetic2(const char* op, const KernelArgs& args, F f) {
  switch (args.out[0].dtype) {
    case DType::int64: return broadcast2_scalar<int64_t, int64_t>(args, f);
    case DType::int32: return broadcast2_scalar<int32_t, int32_t>(args, f);
    case DType::int8: return broadcast2_scalar<int8_t, int8_t>(args, f);
    case DType::uint8: return broadcast2_scalar<uint8_t, uint8_t>(args, f);
    default: return broadcast2(op, args, f);
  }
}

// y = f(a, b) as bool.
template <class F>
PLM_INLINE void compare2(const KernelArgs& args, F f) {
  const auto halves = [&](auto a, auto b)
                          __attribute__((always_inline)) { return f(to_float(a), to_float(b)); };
  switch (args.in[0].dtype) {
    case DType::float64: return broadcast2_scalar<double, uint8_t>(args, f);
    case DType::float32: return broadcast2_scalar<float, uint8_t>(args, f);
    case DType::bfloat16: return broadcast2_scalar<bf16, uint8_t>(args, halves);
    case DType::float16: return broadcast2_scalar<f16, uint8_t>(args, halves);
    case DType::int64: return broadcast2_scalar<int64_t, uint8_t>(args, f);
    case DType::int32: return broadcast2_scalar<int32_t, uint8_t>(args, f);
    case DType::int8: return broadcast2_scalar<int8_t, uint8_t>(args, f);
    case DType::uint8:
    case DType::boolean: return broadcast2_scalar<uint8_t, uint8_t>(args, f);
  }
}

}  // namespace plmcore::PLM_ISA
