// Matrix products on one thread, from MKL or OpenBLAS. Row-major: C[M, N] = alpha * op(A) op(B) + beta * C.
// Kernels split their work into tiles and call this for each.
#pragma once

#include <cstdint>

namespace plmcore::blas {

enum class Op { plain, transposed };

void gemm(Op a, Op b, int64_t M, int64_t N, int64_t K, float alpha, const float* A, int64_t lda,
          const float* B, int64_t ldb, float beta, float* C, int64_t ldc);
void gemm(Op a, Op b, int64_t M, int64_t N, int64_t K, double alpha, const double* A, int64_t lda,
          const double* B, int64_t ldb, double beta, double* C, int64_t ldc);

const char* name();  // "mkl" or "openblas", with version

}  // namespace plmcore::blas
