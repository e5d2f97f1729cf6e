// The bits of an element on the host, for kernels that fill memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cstdint>

#include "plmcore/dtype.h"

namespace plmcore::cuda {

// In the low bytes. A float16 is rounded once, a bfloat16 by way of float32, as on the CPU.
inline uint64_t element_bits(double value, DType t) {
  switch (t) {
    case DType::float64: return std::bit_cast<uint64_t>(value);
    case DType::float32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::bfloat16: return __nv_bfloat16_raw(__float2bfloat16(static_cast<float>(value))).x;
    case DType::float16: return __half_raw(__float2half(static_cast<float>(value))).x;
    case DType::boolean: return value != 0;
    default: return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

}  // namespace plmcore::cuda
