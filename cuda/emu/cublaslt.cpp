// Stand-in for cuBLASLt: the products by the definition, column-major as there, queued on the stream, with
// the checks that the real library leaves to its caller.
//
// An "algorithm" records what it was chosen for: the shapes, the epilogue, the alignment that the preference
// promised and the workspace. Running it on something else is a fault. Epilogues on float64 are not
// supported, so that callers' own way without them is tried too.
#include "emu/cublasLt.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>

#include "emu/failure.h"
#include "emu/memory.h"
#include "emu/stream.h"

struct cublasLtContext {};
struct PlmEmuMatmul {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct PlmEmuLayout {
  cudaDataType type;
  int64_t rows, columns, stride;
  int32_t batch = 1;
  int64_t batch_stride = 0;
};
struct PlmEmuPreference {
  uint64_t workspace = 0;
  uint32_t reductions = ~0u;  // anything goes
  uint32_t alignment[4] = {256, 256, 256, 256};  // a, b, c, d
};

namespace plmcore::emu {

namespace {

constexpr uint64_t kWorkspace =
    1 << 20;  // what the stand-in's algorithms ask for, where the preference has it

struct Algorithm {
  uint32_t tag, epilogue;
  int64_t m, n, k;
  uint64_t workspace;
  uint8_t alignment[4];  // log2
  int32_t type;
  int64_t batch;
  uint64_t unused;
};
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
constexpr uint32_t kTag = 0x706c6d;

size_t bytes_of(cudaDataType type) {
  if (type == CUDA_R_64F) return 8;
  return type == CUDA_R_32F ? 4 : 2;
}
size_t bytes_of(const PlmEmuLayout& l) {
  if (!l.rows || !l.columns) return 0;
  return static_cast<size_t>((l.batch - 1) * l.batch_stride + (l.columns - 1) * l.stride + l.rows) *
         bytes_of(l.type);
}

bool set(void* to, size_t size, const void* value, size_t bytes) {
  if (bytes != size) return false;
  std::memcpy(to, value, size);
  return true;
}

constexpr int64_t kTogether = 64;  // terms that are added on their own, as in the tiles of a real product

// d (m x n) = epilogue(op(a) op(b) + beta d), all column-major. op(a) is laid out by k and op(b) by column
// first, so that the inner loop is vectors; each sum still goes over k in order. The caller has checked the
// ranges: unwatched, and so faster.
template <class T>
[[gnu::no_sanitize("address", "undefined"), gnu::optimize("O3")]] void multiply(
    const PlmEmuMatmul& how, const PlmEmuLayout& la, const T* a, const PlmEmuLayout& lb, const T* b,
    const PlmEmuLayout& ld, T* d, int64_t K, double beta) {
  using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const T* bias = how.epilogue & CUBLASLT_EPILOGUE_BIAS ? static_cast<const T*>(how.bias) : nullptr;
  const int64_t M = ld.rows, N = ld.columns;
  const auto left = std::make_unique<A[]>(static_cast<size_t>(K * M)),
             column = std::make_unique<A[]>(static_cast<size_t>(K)),
             sums = std::make_unique<A[]>(static_cast<size_t>(2 * M));
  A* const __restrict__ p = left.get();
  A* const __restrict__ sum = sums.get();
  A* const __restrict__ part = sum + M;
  for (int64_t k = 0; k < K; ++k)
    for (int64_t i = 0; i < M; ++i)
      p[k * M + i] = static_cast<A>(how.transpose_a ? a[i * la.stride + k] : a[k * la.stride + i]);
  for (int64_t j = 0; j < N; ++j) {
    for (int64_t k = 0; k < K; ++k)
      column[k] = static_cast<A>(how.transpose_b ? b[k * lb.stride + j] : b[j * lb.stride + k]);
    for (int64_t i = 0; i < M; ++i) sum[i] = 0;
    for (int64_t first = 0; first < K; first += kTogether) {
      for (int64_t i = 0; i < M; ++i) part[i] = 0;
      for (int64_t k = first; k < K && k < first + kTogether; ++k) {
        const A factor = column[k];
        for (int64_t i = 0; i < M; ++i) part[i] += p[k * M + i] * factor;
      }
      for (int64_t i = 0; i < M; ++i) sum[i] += part[i];
    }
    for (int64_t i = 0; i < M; ++i) {
      A v = sum[i];
      if (beta != 0) v += static_cast<A>(beta) * static_cast<A>(d[j * ld.stride + i]);
      if (bias) v += static_cast<A>(bias[i]);
      if (how.epilogue & CUBLASLT_EPILOGUE_RELU) v = v > 0 ? v : 0;
      if (how.epilogue & CUBLASLT_EPILOGUE_GELU)
        v = A(0.5) * v * (1 + std::tanh(A(0.7978845608028654) * (v + A(0.044715) * v * v * v)));
      d[j * ld.stride + i] = static_cast<T>(v);
    }
  }
}

void check_algorithm(const Algorithm& algorithm, const PlmEmuMatmul& how, const PlmEmuLayout& d, int64_t K,
                     const void* const (&p)[4], const void* workspace, size_t workspace_bytes) {
  if (algorithm.tag != kTag)
    fail("cublasLtMatmul: the algorithm does not come from cublasLtMatmulAlgoGetHeuristic");
  if (algorithm.m != d.rows || algorithm.n != d.columns || algorithm.k != K || algorithm.type != d.type ||
      algorithm.epilogue != how.epilogue || algorithm.batch != d.batch)
    fail("cublasLtMatmul: the algorithm was chosen for another product");
  if (algorithm.workspace > workspace_bytes)
    fail("cublasLtMatmul: the algorithm needs %zu bytes of workspace, got %zu",
         static_cast<size_t>(algorithm.workspace), workspace_bytes);
  check_device_memory(workspace, workspace_bytes, "cublasLtMatmul is given a workspace of");
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<uintptr_t>(p[i]) % (uintptr_t{1} << algorithm.alignment[i]))
      fail("cublasLtMatmul: matrix %c is less aligned than the preference promised (%d bytes)", "ABCD"[i],
           1 << algorithm.alignment[i]);
}

}  // namespace

}  // namespace plmcore::emu

using namespace plmcore::emu;

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_INVALID_VALUE: return "an invalid value was given to cuBLASLt";
    case CUBLAS_STATUS_EXECUTION_FAILED: return cudaGetErrorString(cudaErrorLaunchFailure);
    case CUBLAS_STATUS_NOT_SUPPORTED: return "cuBLASLt has no kernel for this product";
  }
  return "unknown status";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return *handle = new cublasLtContext, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmul, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return *matmul = new PlmEmuMatmul{compute, scale}, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul) {
  return delete matmul, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmul,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  bool ok = false;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      ok = set(&matmul->transpose_a, sizeof matmul->transpose_a, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      ok = set(&matmul->transpose_b, sizeof matmul->transpose_b, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      ok = set(&matmul->epilogue, sizeof matmul->epilogue, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: ok = set(&matmul->bias, sizeof matmul->bias, value, bytes); break;
  }
  return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t stride) {
  if (stride < static_cast<int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  return *layout = new PlmEmuLayout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), stride},
         CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return delete layout, CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  const bool ok = attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
                      ? set(&layout->batch, sizeof layout->batch, value, bytes)
                      : set(&layout->batch_stride, sizeof layout->batch_stride, value, bytes);
  return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return *preference = new PlmEmuPreference, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return delete preference, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  bool ok = false;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    ok = set(&preference->workspace, sizeof preference->workspace, value, bytes);
  else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    ok = set(&preference->reductions, sizeof preference->reductions, value, bytes);
  else
    ok = set(&preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], sizeof(uint32_t),
             value, bytes);
  return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t matmul,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t found[], int* count) {
  *count = 0;
  const int64_t k = matmul->transpose_a ? a->rows : a->columns,
                k_b = matmul->transpose_b ? b->columns : b->rows;
  const int64_t m = matmul->transpose_a ? a->columns : a->rows,
                n = matmul->transpose_b ? b->rows : b->columns;
  const bool fits =
      k == k_b && m == d->rows && n == d->columns && c->rows == d->rows && c->columns == d->columns;
  const bool batches = a->batch == d->batch && b->batch == d->batch && c->batch == d->batch && d->batch > 0;
  if (wanted < 1 || !fits || !batches || !m || !n || !k) return CUBLAS_STATUS_INVALID_VALUE;
  // Results must have the same bits on every run: no sums by atomics.
  if (preference->reductions & ~static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool doubles = d->type == CUDA_R_64F;
  if (a->type != d->type || b->type != d->type || (matmul->compute == CUBLAS_COMPUTE_64F) != doubles ||
      (matmul->scale == CUDA_R_64F) != doubles)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (doubles && matmul->epilogue != CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm algorithm{kTag,     matmul->epilogue,
                      m,        n,
                      k,        preference->workspace < kWorkspace ? preference->workspace : kWorkspace,
                      {},       d->type,
                      d->batch, 0};
  for (int i = 0; i < 4; ++i)
    algorithm.alignment[i] = static_cast<uint8_t>(__builtin_ctz(preference->alignment[i]));
  found[0] = {};
  std::memcpy(&found[0].algo, &algorithm, sizeof algorithm);
  found[0].workspaceSize = algorithm.workspace;
  found[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t matmul, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* chosen,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  const bool doubles = matmul->scale == CUDA_R_64F;
  const double one = doubles ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double kept = doubles ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (one != 1 || c != d) return CUBLAS_STATUS_NOT_SUPPORTED;
  const cudaError_t error = guarded([&] {
    const PlmEmuMatmul how = *matmul;
    const PlmEmuLayout la = *a_layout, lb = *b_layout, ld = *d_layout;
    const int64_t K = how.transpose_a ? la.rows : la.columns;
    Algorithm algorithm;
    std::memcpy(&algorithm, chosen, sizeof algorithm);
    check_algorithm(algorithm, how, ld, K, {a, b, c, d}, workspace, workspace_bytes);
    enqueue(stream, [=] {
      check_device_memory(a, bytes_of(la), "cublasLtMatmul reads (A)");
      check_device_memory(b, bytes_of(lb), "cublasLtMatmul reads (B)");
      check_device_memory(d, bytes_of(ld), "cublasLtMatmul writes (D)");
      if (how.epilogue & CUBLASLT_EPILOGUE_BIAS)
        check_device_memory(how.bias, static_cast<size_t>(ld.rows) * bytes_of(ld.type),
                            "cublasLtMatmul reads (bias)");
      const auto run = [&]<class T>(T*) {
        for (int64_t k = 0; k < ld.batch; ++k)
          multiply(how, la, static_cast<const T*>(a) + k * la.batch_stride, lb,
                   static_cast<const T*>(b) + k * lb.batch_stride, ld,
                   static_cast<T*>(d) + k * ld.batch_stride, K, kept);
      };
      switch (ld.type) {
        case CUDA_R_64F: return run(static_cast<double*>(nullptr));
        case CUDA_R_32F: return run(static_cast<float*>(nullptr));
        case CUDA_R_16BF: return run(static_cast<__nv_bfloat16*>(nullptr));
        case CUDA_R_16F: return run(static_cast<__half*>(nullptr));
        default: fail("cublasLtMatmul: no such element type: %d", static_cast<int>(ld.type));
      }
    });
  });
  return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
