// Matrix products by cuBLASLt.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "plmcore/dtype.h"

namespace plmcore::cuda {

// out [M, N] = activation(op(a) op(b) + bias), row-major, for `batch` products at once. A flag says that an
// operand is stored the other way round: a as [K, M], b as [N, K].
struct Product {
  bool transpose_a = false, transpose_b = false;
  int64_t M = 0, N = 0, K = 0;
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_out = 0;  // elements from one product to the next
  int64_t row_a = 0, row_b = 0, row_out = 0;  // elements from one row to the next; 0: no gap
  bool add = false;  // to what is in out
  DType dtype = DType::float32;
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
  const void* bias = nullptr;  // [N], or none
  enum Activation { none, relu, gelu_tanh } activation = none;
};

// nullptr, or what failed. An empty out is nothing to do; over an empty K the product is zero. Not every
// dtype has kernels with bias and activation: *fused says whether these were applied; when not, out holds the
// plain product.
const char* multiply(const Product& product, cudaStream_t stream, bool* fused);
// Without bias and activation.
const char* multiply(const Product& product, cudaStream_t stream);

}  // namespace plmcore::cuda
