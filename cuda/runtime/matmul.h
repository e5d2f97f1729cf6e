// Matrix products by cuBLASLt.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "plmcore/dtype.h"

namespace plmcore::cuda {

// out [M, N] = activation(op(a) op(b) + bias), row-major. A flag says that an operand is stored the other way
// round: a as [K, M], b as [N, K].
struct Product {
  bool transpose_a = false, transpose_b = false;
  int64_t M = 0, N = 0, K = 0;
  DType dtype = DType::float32;
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
  const void* bias = nullptr;  // [N], or none
  enum Activation { none, relu, gelu_tanh } activation = none;
};

// nullptr, or what failed. Not every dtype has kernels with bias and activation: *fused says whether these
// were applied; when not, out holds the plain product.
const char* multiply(const Product& product, cudaStream_t stream, bool* fused);

}  // namespace plmcore::cuda
