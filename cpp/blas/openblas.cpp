#include <cblas.h>

#include "blas/blas.h"

namespace plmcore::blas {

static CBLAS_TRANSPOSE op(Op o) { return o == Op::transposed ? CblasTrans : CblasNoTrans; }

// The pool above is ours: OpenBLAS computes on the calling thread.
static const bool kSequential = [] {
  scipy_openblas_set_num_threads(1);
  return true;
}();

void gemm(Op a, Op b, int64_t M, int64_t N, int64_t K, float alpha, const float* A, int64_t lda,
          const float* B, int64_t ldb, float beta, float* C, int64_t ldc) {
  scipy_cblas_sgemm(CblasRowMajor, op(a), op(b), static_cast<blasint>(M), static_cast<blasint>(N),
                    static_cast<blasint>(K), alpha, A, static_cast<blasint>(lda), B,
                    static_cast<blasint>(ldb), beta, C, static_cast<blasint>(ldc));
}
void gemm(Op a, Op b, int64_t M, int64_t N, int64_t K, double alpha, const double* A, int64_t lda,
          const double* B, int64_t ldb, double beta, double* C, int64_t ldc) {
  scipy_cblas_dgemm(CblasRowMajor, op(a), op(b), static_cast<blasint>(M), static_cast<blasint>(N),
                    static_cast<blasint>(K), alpha, A, static_cast<blasint>(lda), B,
                    static_cast<blasint>(ldb), beta, C, static_cast<blasint>(ldc));
}

const char* name() { return "openblas"; }

}  // namespace plmcore::blas
