// Panels of B are read as they were packed; only x is packed on the way.
#include "kernels/epilogue.h"
#include "kernels/gemm.h"

namespace plmcore::PLM_ISA {

// [N, K] -> [N / kNR][K][kNR], rows beyond N as zeros.
PLM_KERNEL(pack_weight) {
  const int64_t N = args.in[0].size[0], K = args.in[0].size[1], panels = args.out[0].size[0] / kNR;
  const float* w = args.in[0].as<float>();
  float* out = args.out[0].as<float>();
  for_rows(panels, K * kNR, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      const int64_t rows = min_of(kNR, N - p * kNR);
      if (rows > 0) pack_k_contiguous<kNR>(w + p * kNR * K, K, rows, K, out + p * kNR * K);
      else std::memset(out + p * kNR * K, 0, static_cast<size_t>(K * kNR) * 4);
    }
  });
}

static Workspace workspace(const KernelArgs&) { return {.per_worker = kGemmWorkspace}; }

PLM_KERNEL(linear_packed, workspace) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t M = x.rows(), K = x.last(), N = y.last(), activation = args.i("activation");
  if (M == 0 || N == 0) return;
  const float* bias = args.has(2) ? args.in[2].as<float>() : nullptr;
  float* out = y.as<float>();
  const FinishRow<float> finish = finish_of<float>(activation);
  gemm(args, nullptr, M, N, K, Operand<float>{x.as<float>(), K, true}, Operand<float>{nullptr, 0, true},
       args.in[1].as<float>(), out, N, [&](int64_t i, int64_t j, int64_t m, int64_t n) {
         if (!bias && activation == 0) return;
         for (int64_t r = i; r < i + m; ++r) finish(out + r * N + j, bias ? bias + j : nullptr, nullptr, n);
       });
}

}  // namespace plmcore::PLM_ISA
