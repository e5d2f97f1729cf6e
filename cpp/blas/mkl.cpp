#include <mkl.h>

#include <string>

#include "blas/blas.h"

namespace plmcore::blas {

static CBLAS_TRANSPOSE op(Op o) { return o == Op::transposed ? CblasTrans : CblasNoTrans; }

void gemm(Op a, Op b, int64_t M, int64_t N, int64_t K, float alpha, const float* A, int64_t lda,
          const float* B, int64_t ldb, float beta, float* C, int64_t ldc) {
  cblas_sgemm(CblasRowMajor, op(a), op(b), static_cast<MKL_INT>(M), static_cast<MKL_INT>(N),
              static_cast<MKL_INT>(K), alpha, A, static_cast<MKL_INT>(lda), B, static_cast<MKL_INT>(ldb),
              beta, C, static_cast<MKL_INT>(ldc));
}
void gemm(Op a, Op b, int64_t M, int64_t N, int64_t K, double alpha, const double* A, int64_t lda,
          const double* B, int64_t ldb, double beta, double* C, int64_t ldc) {
  cblas_dgemm(CblasRowMajor, op(a), op(b), static_cast<MKL_INT>(M), static_cast<MKL_INT>(N),
              static_cast<MKL_INT>(K), alpha, A, static_cast<MKL_INT>(lda), B, static_cast<MKL_INT>(ldb),
              beta, C, static_cast<MKL_INT>(ldc));
}

const char* name() {
  static const std::string text = [] {
    MKLVersion v;
    mkl_get_version(&v);
    return "mkl " + std::to_string(v.MajorVersion) + "." + std::to_string(v.UpdateVersion);
  }();
  return text.c_str();
}

}  // namespace plmcore::blas
