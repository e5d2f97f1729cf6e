// Any library with the C interface of BLAS: the system's, or one that is given. No header of it is needed.
#include "blas/blas.h"

extern "C" {
void cblas_sgemm(int layout, int a, int b, int M, int N, int K, float alpha, const float* A, int lda,
                 const float* B, int ldb, float beta, float* C, int ldc);
void cblas_dgemm(int layout, int a, int b, int M, int N, int K, double alpha, const double* A, int lda,
                 const double* B, int ldb, double beta, double* C, int ldc);
// How OpenBLAS, where it is one, is told that the pool above is ours.
[[gnu::weak]] void openblas_set_num_threads(int threads);
}

namespace plmcore::blas {

namespace {
constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
int op(Op o) { return o == Op::transposed ? kTransposed : kPlain; }

const bool kSequential = [] {
  if (openblas_set_num_threads) openblas_set_num_threads(1);
  return true;
}();
}  // namespace

void gemm(Op a, Op b, int64_t M, int64_t N, int64_t K, float alpha, const float* A, int64_t lda,
          const float* B, int64_t ldb, float beta, float* C, int64_t ldc) {
  cblas_sgemm(kRowMajor, op(a), op(b), static_cast<int>(M), static_cast<int>(N), static_cast<int>(K), alpha,
              A, static_cast<int>(lda), B, static_cast<int>(ldb), beta, C, static_cast<int>(ldc));
}
void gemm(Op a, Op b, int64_t M, int64_t N, int64_t K, double alpha, const double* A, int64_t lda,
          const double* B, int64_t ldb, double beta, double* C, int64_t ldc) {
  cblas_dgemm(kRowMajor, op(a), op(b), static_cast<int>(M), static_cast<int>(N), static_cast<int>(K), alpha,
              A, static_cast<int>(lda), B, static_cast<int>(ldb), beta, C, static_cast<int>(ldc));
}

const char* name() { return "system"; }

}  // namespace plmcore::blas
