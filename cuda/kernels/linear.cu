// y = activation(x W^T + bias).   x [M, K]; weight [N, K]; bias [N] or none -> [M, N]
// The product by cuBLASLt, with bias and relu in its epilogue. What the epilogue cannot do (other
// activations, a kept sum, a bias that is not 16-byte aligned, dtypes without one) is one more pass over y.
//
// Backward: dz = dy * slope, and its column sums for dbias, in one pass over dy (device/column_sums.cuh).
// Then dx = dz W,  dweight = dz^T x.
#include <cstdlib>

#include "device/column_sums.cuh"
#include "device/finish.cuh"
#include "runtime/matmul.h"

namespace plmcore::cuda {

namespace {

// dz = dy * slope(at) where there is an activation; part [chunks][N]: column sums of dz.
template <class T>
__global__ void linear_grad_columns(const T* __restrict__ dy, const T* __restrict__ at, T* __restrict__ dz,
                                    int64_t rows, int64_t N, Acc<T>* __restrict__ part,
                                    Activation activation) {
  chunk_column_sums<1>(rows, N, part, [&](int64_t row, int64_t column, Acc<T>(&values)[1]) {
    const int64_t i = row * N + column;
    Acc<T> g = widen(dy[i]);
    if (dz) {
      const T rounded =
          narrow<T>(g * slope(activation, widen(at[i])));  // dbias sums what dx and dweight are made of
      dz[i] = rounded;
      g = widen(rounded);
    }
    values[0] = g;
  });
}

// gelu_tanh in cuBLASLt's epilogue: PLMCORE_CUDA_GELU_EPILOGUE=1. On GPUs of others it was slower than a pass
// of its own for bfloat16; the first run on hardware decides.
bool gelu_in_epilogue() {
  static const char* const wish = std::getenv("PLMCORE_CUDA_GELU_EPILOGUE");
  return wish && *wish == '1';
}

}  // namespace

PLM_KERNEL(linear) {
  const View &x = args.in[0], &w = args.in[1];
  const int64_t M = x.rows(), K = x.last(), N = w.size[0];
  const auto activation = static_cast<Activation>(args.i("activation"));
  const cudaStream_t stream = stream_of(args);
  if (M == 0 || N == 0) return nullptr;
  return for_float(x.dtype, [&](auto type) -> const char* {
    using T = typename decltype(type)::type;
    const T* bias = args.has(2) ? args.in[2].as<T>() : nullptr;
    T *y = args.out[0].as<T>(), *sum = args.n_out > 1 ? args.out[1].as<T>() : nullptr;
    // With a kept sum the activation comes after it; the product goes where it is read next.
    const bool in_epilogue =
        !sum && aligned(bias) &&
        (activation == Activation::relu || (activation == Activation::gelu_tanh && gelu_in_epilogue()));
    T* z = sum ? sum : y;
    Product product{.transpose_b = true,
                    .M = M,
                    .N = N,
                    .K = K,
                    .dtype = x.dtype,
                    .a = x.data,
                    .b = w.data,
                    .out = z,
                    .bias = aligned(bias) ? bias : nullptr};  // an epilogue reads it in packs
    if (in_epilogue) product.activation = activation == Activation::relu ? Product::relu : Product::gelu_tanh;
    bool fused = false;
    if (const char* why = multiply(product, stream, &fused)) return why;
    const T* open_bias = fused && product.bias ? nullptr : bias;
    const bool finished = !open_bias && (activation == Activation::none || (fused && in_epilogue));
    if (finished) return nullptr;
    return problem(launch_finish(z, open_bias, open_bias ? sum : nullptr, y, M, N, activation, stream));
  });
}

// part [chunks][N], then dz where there is an activation.
static Workspace workspace_grad(const KernelArgs& args) {
  const View& dy = args.in[2];
  const size_t part = column_sums_workspace(dy, 1).shared,
               dz = args.i("activation") ? static_cast<size_t>(dy.numel) * size_of(dy.dtype) : 0;
  return {.shared = (part + 63) / 64 * 64 + dz};
}

// x, weight, dy, sum or y -> those of dx, dweight, dbias that `want` names.
PLM_KERNEL(linear_grad, workspace_grad) {
  const View &x = args.in[0], &w = args.in[1], &dy = args.in[2];
  const int64_t M = dy.rows(), N = w.size[0], K = w.size[1], want = args.i("want"), chunks = row_chunks(M);
  const auto activation = static_cast<Activation>(args.i("activation"));
  const cudaStream_t stream = stream_of(args);
  return for_float(x.dtype, [&](auto type) -> const char* {
    using T = typename decltype(type)::type;
    auto* part = args.shared_as<Acc<T>>();
    T* made = activation == Activation::none
                  ? nullptr
                  : reinterpret_cast<T*>(args.shared +
                                         (static_cast<size_t>(chunks * N) * sizeof(Acc<T>) + 63) / 64 * 64);
    const void* dz = made ? made : dy.data;
    if ((made || (want & 4)) && N)
      if (const char* why = problem(launch<linear_grad_columns<T>>(
              column_grid(N, chunks), column_block(), 0, stream, dy.as<T>(),
              made ? args.in[3].as<T>() : nullptr, made, M, N, part, activation)))
        return why;
    int next = 0;
    if (want & 1) {
      const Product dx{
          .M = M, .N = K, .K = N, .dtype = x.dtype, .a = dz, .b = w.data, .out = args.out[next++].data};
      if (const char* why = multiply(dx, stream)) return why;
    }
    if (want & 2) {
      const Product dw{.transpose_a = true,
                       .M = N,
                       .N = K,
                       .K = M,
                       .dtype = x.dtype,
                       .a = dz,
                       .b = x.data,
                       .out = args.out[next++].data};
      if (const char* why = multiply(dw, stream)) return why;
    }
    if ((want & 4) && N)
      if (const char* why = problem(launch_add_chunks(part, chunks, N, N, args.out[next].as<T>(), stream)))
        return why;
    return nullptr;
  });
}

}  // namespace plmcore::cuda
