// Tiles of x W^T with bias and activation applied while a tile is in cache. Up to eight rows: one pass over W
// at memory speed. Backward: one pass makes dz = dy * slope and its column sums, then two products.
#include "kernels/column_sums.h"
#include "kernels/epilogue.h"
#include "kernels/few_rows.h"
#include "kernels/gemm.h"

namespace plmcore::PLM_ISA {

// The weight is [N, K]; transposed, as files may have it, [K, N]. Its N columns of y may be some of y's.
static int64_t columns(const KernelArgs& args) { return args.in[1].size[args.i("transposed")]; }

static Workspace workspace(const KernelArgs& args) {
  const int64_t M = args.in[0].rows(), N = columns(args), K = args.in[0].last();
  if (M > kGemmRows) return {.shared = gemm_shared(N, K), .per_worker = kGemmWorkspace};
  return {.shared = gemm_transposes(M, K) ? gemm_shared(M, K) : 0, .per_worker = kGemmWorkspace};
}

PLM_KERNEL(linear, workspace) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const int64_t M = x.rows(), K = x.last(), N = columns(args), ldy = y.last(),
                activation = args.i("activation");
  const bool transposed = args.i("transposed");
  if (M == 0 || N == 0) return;
  for_float("linear", x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* bias = args.has(2) ? args.in[2].as<T>() : nullptr;
    T *out = y.as<T>(), *sum = args.n_out > 1 ? args.out[1].as<T>() : nullptr;
    const FinishRow<T> finish = finish_of<T>(activation);
    auto epilogue = [&](int64_t i, int64_t j, int64_t m, int64_t n) {
      if (!bias && !sum && activation == 0) return;
      for (int64_t r = i; r < i + m; ++r)
        finish(out + r * ldy + j, bias ? bias + j : nullptr, sum ? sum + r * ldy + j : nullptr, n);
    };
    if constexpr (std::is_same_v<T, float>)
      if (M <= kGemmFewRows)  // then the weight is [N, K] and y has N columns
        return few_rows(M, N, K, x.as<float>(), K, w.as<float>(), out,
                        [&](int64_t b, int64_t e) { epilogue(0, b, M, e - b); });
    gemm(args, args.shared, M, N, K, Operand<T>{x.as<T>(), K, true},
         Operand<T>{w.as<T>(), transposed ? N : K, !transposed}, nullptr, out, ldy, epilogue);
  });
}

static Workspace workspace_grad(const KernelArgs& args) {
  const View& dy = args.in[2];
  const size_t element = dy.dtype == DType::float64 ? 8 : 4;
  const int64_t M = dy.rows(), N = args.in[1].size[0], K = args.in[1].size[1];
  const size_t sums = static_cast<size_t>(row_chunks(M) * N) * element;
  const size_t dz = args.i("activation") ? static_cast<size_t>(dy.numel) * size_of(dy.dtype) : 0;
  const size_t to_x = gemm_shared(K, N), to_weight = gemm_shared(K, M);
  return {.shared = (sums + 63) / 64 * 64 + (dz + 63) / 64 * 64 + (to_x > to_weight ? to_x : to_weight),
          .per_worker = kGemmWorkspace};
}

PLM_KERNEL(linear_grad, workspace_grad) {
  const View &x = args.in[0], &w = args.in[1], &dy = args.in[2];
  const int64_t M = dy.rows(), N = w.size[0], K = w.size[1], want = args.i("want"),
                activation = args.i("activation");
  for_float("linear_grad", x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using A = typename Lane<T>::Scalar;
    const int64_t chunks = row_chunks(M);
    A* part = args.shared_as<A>();  // [chunks][N]: sums of dz
    const T* dz = dy.as<T>();
    char* rest = args.shared + (static_cast<size_t>(chunks * N) * sizeof(A) + 63) / 64 * 64;
    T* made = reinterpret_cast<T*>(rest);
    if (activation) rest += (static_cast<size_t>(M * N) * sizeof(T) + 63) / 64 * 64;
    if (activation || (want & 4)) {
      const SlopeRow<T> slope = slope_of<T>(activation);
      parallel_for(chunks, [&](int64_t k, int) {
        A* sum = part + k * N;
        for (int64_t c = 0; c < N; ++c) sum[c] = 0;
        for (int64_t r = chunk_begin(M, chunks, k), e = chunk_begin(M, chunks, k + 1); r < e; ++r) {
          const T* row = dy.as<T>() + r * N;
          if (activation) {
            slope(made + r * N, row, args.in[3].as<T>() + r * N, N);
            row = made + r * N;
          }
          for (int64_t c = 0; c < N; ++c) sum[c] += to_float(row[c]);
        }
      });
      if (activation) dz = made;
    }
    int next = 0;
    if (want & 1)
      gemm(args, rest, M, K, N, Operand<T>{dz, N, true}, Operand<T>{w.as<T>(), K, false},
           args.out[next++].as<T>(), K);
    if (want & 2)
      gemm(args, rest, N, K, M, Operand<T>{dz, N, false}, Operand<T>{x.as<T>(), K, false},
           args.out[next++].as<T>(), K);
    if (want & 4) add_chunks(part, chunks, N, N, args.out[next].as<T>());
  });
}

}  // namespace plmcore::PLM_ISA
