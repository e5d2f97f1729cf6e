#include "runtime/matmul.h"

#include <cublasLt.h>

#include <array>
#include <map>
#include <mutex>

#include "runtime/runtime.h"

namespace plmcore::cuda {

namespace {

constexpr size_t kPlans = 1024;  // more than that, and all are dropped: lengths vary without end
constexpr uint64_t kWorkspace = 32ull << 20;  // what NVIDIA advises for the largest GPUs

// A product as cuBLASLt wants it, column-major: out^T [N, M] = op(b)^T op(a)^T, so its A is our b and its B
// our a.
struct Plan {
  cublasLtMatmulDesc_t matmul = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
  bool found = false;  // false: there is no kernel for it

  Plan() = default;
  Plan(const Plan&) = delete;
  ~Plan() {
    if (matmul) cublasLtMatmulDescDestroy(matmul);
    for (cublasLtMatrixLayout_t layout : {a, b, out})
      if (layout) cublasLtMatrixLayoutDestroy(layout);
  }
};

cudaDataType data_type(DType t) {
  switch (t) {
    case DType::float64: return CUDA_R_64F;
    case DType::bfloat16: return CUDA_R_16BF;
    case DType::float16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}

uint32_t epilogue_of(const Product& p) {
  switch (p.activation) {
    case Product::relu: return p.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Product::gelu_tanh:
      return p.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;  // it is the tanh form
    case Product::none: break;
  }
  return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// The largest power of two up to 256 that divides an address: a view may start anywhere.
uint32_t alignment(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p) | 256;
  return static_cast<uint32_t>(address & -address);
}

class CublasLt {
 public:
  // CUBLAS_STATUS_NOT_SUPPORTED where there is no kernel with this epilogue.
  cublasStatus_t run(const Product& p, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);  // a plan's descriptor holds the bias pointer while the call is made
    if (cublasStatus_t s = prepare(); s != CUBLAS_STATUS_SUCCESS) return s;
    Plan* plan = nullptr;
    if (cublasStatus_t s = find(p, &plan); s != CUBLAS_STATUS_SUCCESS) return s;
    if (!plan->found) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (p.bias)
      if (cublasStatus_t s = set_bias(*plan, p); s != CUBLAS_STATUS_SUCCESS) return s;
    const float one = 1, kept = p.add;
    const double wide_one = 1, wide_kept = p.add;
    const bool wide = p.dtype == DType::float64;
    return cublasLtMatmul(handle_, plan->matmul, wide ? static_cast<const void*>(&wide_one) : &one, p.b,
                          plan->a, p.a, plan->b, wide ? static_cast<const void*>(&wide_kept) : &kept, p.out,
                          plan->out, p.out, plan->out, &plan->algorithm, workspace_, workspace_bytes_,
                          stream);
  }

 private:
  using Key = std::array<int64_t, 18>;

  cublasStatus_t prepare() {
    if (handle_) return CUBLAS_STATUS_SUCCESS;
    if (cudaMalloc(&workspace_, kWorkspace) == cudaSuccess) workspace_bytes_ = kWorkspace;
    else cudaGetLastError();  // slower algorithms do without
    return cublasLtCreate(&handle_);
  }

  static cublasStatus_t set_bias(Plan& plan, const Product& p) {
    return cublasLtMatmulDescSetAttribute(plan.matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.bias,
                                          sizeof p.bias);
  }

  cublasStatus_t find(const Product& p, Plan** plan) {
    const Key key = {p.transpose_a,
                     p.transpose_b,
                     p.M,
                     p.N,
                     p.K,
                     static_cast<int64_t>(p.dtype),
                     epilogue_of(p),
                     alignment(p.a),
                     alignment(p.b),
                     alignment(p.out),
                     alignment(p.bias),
                     p.batch,
                     p.stride_a,
                     p.stride_b,
                     p.stride_out,
                     p.row_a,
                     p.row_b,
                     p.row_out};
    if (const auto it = plans_.find(key); it != plans_.end())
      return *plan = &it->second, CUBLAS_STATUS_SUCCESS;
    if (plans_.size() >= kPlans) plans_.clear();
    Plan& made = plans_[key];
    const cublasStatus_t status = make(p, made);
    if (status != CUBLAS_STATUS_SUCCESS) plans_.erase(key);
    *plan = &made;
    return status;
  }

  cublasStatus_t make(const Product& p, Plan& plan) {
    const cudaDataType type = data_type(p.dtype);
    const bool wide = p.dtype == DType::float64;
    cublasStatus_t s = cublasLtMatmulDescCreate(&plan.matmul, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                                wide ? CUDA_R_64F : CUDA_R_32F);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulDescSetAttribute(plan.matmul, attribute, &value, sizeof value);
    };
    const auto batches = static_cast<int32_t>(p.batch);
    const auto layout = [&](cublasLtMatrixLayout_t* to, int64_t rows, int64_t columns, int64_t stride,
                            int64_t from_one_to_the_next) {
      if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutCreate(to, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                       stride ? stride : rows);
      if (s != CUBLAS_STATUS_SUCCESS || batches == 1) return;
      s = cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches);
      if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                             &from_one_to_the_next, sizeof from_one_to_the_next);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
    if (s == CUBLAS_STATUS_SUCCESS && p.bias)
      s = set_bias(plan, p);  // the choice of a kernel looks at its alignment
    // A row-major [r, c] is a column-major [c, r].
    layout(&plan.a, p.transpose_b ? p.K : p.N, p.transpose_b ? p.N : p.K, p.row_b, p.stride_b);
    layout(&plan.b, p.transpose_a ? p.M : p.K, p.transpose_a ? p.K : p.M, p.row_a, p.stride_a);
    layout(&plan.out, p.N, p.M, p.row_out, p.stride_out);
    return s == CUBLAS_STATUS_SUCCESS ? choose(p, plan) : s;
  }

  cublasStatus_t choose(const Product& p, Plan& plan) {
    cublasLtMatmulPreference_t preference = nullptr;
    cublasStatus_t s = cublasLtMatmulPreferenceCreate(&preference);
    if (s != CUBLAS_STATUS_SUCCESS) return s;
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes_);
    // Sums of split products in a buffer of their own, in order: the others add by atomics.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(p.b));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(p.a));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p.out));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p.out));
    cublasLtMatmulHeuristicResult_t result = {};
    int count = 0;
    if (s == CUBLAS_STATUS_SUCCESS) {
      s = cublasLtMatmulAlgoGetHeuristic(handle_, plan.matmul, plan.a, plan.b, plan.out, plan.out, preference,
                                         1, &result, &count);
      if (s == CUBLAS_STATUS_NOT_SUPPORTED) s = CUBLAS_STATUS_SUCCESS;  // an answer, and one to remember
      else plan.found = count > 0 && result.state == CUBLAS_STATUS_SUCCESS;
      plan.algorithm = result.algo;
    }
    cublasLtMatmulPreferenceDestroy(preference);
    return s;
  }

  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  uint64_t workspace_bytes_ = 0;
  std::map<Key, Plan> plans_;
};

CublasLt& cublas_lt() {
  // Lives as long as the process: the driver may be gone before static destructors.
  static auto* library = new CublasLt;
  return *library;
}

const char* problem(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? nullptr : cublasLtGetStatusString(status);
}

// out = 0, unless the product is added to it.
const char* clear(const Product& p, cudaStream_t stream) {
  if (p.add) return nullptr;
  const size_t element = size_of(p.dtype), row = static_cast<size_t>(p.row_out ? p.row_out : p.N) * element;
  for (int64_t k = 0; k < p.batch; ++k) {
    char* out = static_cast<char*>(p.out) + static_cast<size_t>(k * p.stride_out) * element;
    if (const char* why = cuda::problem(cudaMemset2DAsync(out, row, 0, static_cast<size_t>(p.N) * element,
                                                          static_cast<size_t>(p.M), stream)))
      return why;
  }
  return nullptr;
}

}  // namespace

const char* multiply(const Product& product, cudaStream_t stream, bool* fused) {
  *fused = false;
  if (product.M == 0 || product.N == 0 || product.batch == 0) return nullptr;
  if (product.K == 0) return clear(product, stream);
  const cublasStatus_t status = cublas_lt().run(product, stream);
  *fused = status == CUBLAS_STATUS_SUCCESS;
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) return problem(status);
  Product plain = product;
  plain.bias = nullptr;
  plain.activation = Product::none;
  return problem(cublas_lt().run(plain, stream));
}
const char* multiply(const Product& product, cudaStream_t stream) {
  bool fused;
  return multiply(product, stream, &fused);
}

}  // namespace plmcore::cuda
