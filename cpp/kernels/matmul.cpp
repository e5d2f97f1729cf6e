// Every product of the batch is cut into tiles; all tiles of all products form one grid.
#include "kernels/gemm.h"

namespace plmcore::PLM_ISA {

static Workspace workspace(const KernelArgs&) { return {.per_worker = kGemmWorkspace}; }

PLM_KERNEL(matmul, workspace) {
  const View &a = args.in[0], &b = args.in[1], &y = args.out[0];
  const bool ta = args.i("transpose_a") != 0, tb = args.i("transpose_b") != 0;
  const int64_t M = y.size[y.rank - 2], N = y.size[y.rank - 1], K = a.size[a.rank - (ta ? 2 : 1)];
  if (y.numel == 0) return;
  // Strides of the leading axes of a and b against those of y; 0 where they broadcast.
  int64_t stride[2][Shape::kMaxRank] = {};
  const View* in[2] = {&a, &b};
  for (int k = 0; k < 2; ++k) {
    int64_t run = in[k]->size[in[k]->rank - 1] * in[k]->size[in[k]->rank - 2];
    for (int i = y.rank - 3; i >= 0; --i) {
      const int axis = i - (y.rank - in[k]->rank);
      if (axis < 0) break;
      if (in[k]->size[axis] != 1) stride[k][i] = run;
      run *= in[k]->size[axis];
    }
  }
  for_float("matmul", y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Tiles tiles = tiles_of(M, N);
    const int64_t each = tiles.rows * tiles.columns, batch = y.numel / (M * N);
    // Small products go several to a task.
    const int64_t group = each > 1 ? 1 : ceil_div(1 << 18, M * N * (K > 0 ? K : 1));
    parallel_for(ceil_div(batch * each, group), [&](int64_t task, int worker) {
      for (int64_t t = task * group, e = min_of(t + group, batch * each); t < e; ++t) {
        int64_t at[2] = {0, 0}, rest = t / each;
        for (int i = y.rank - 3; i >= 0; --i) {
          for (int k = 0; k < 2; ++k) at[k] += rest % y.size[i] * stride[k][i];
          rest /= y.size[i];
        }
        const int64_t i = t % each % tiles.rows * tiles.m, j = t % each / tiles.rows * tiles.n;
        gemm_tile(i, min_of(tiles.m, M - i), j, min_of(tiles.n, N - j), K,
                  Operand<T>{a.as<T>() + at[0], ta ? M : K, !ta},
                  Operand<T>{b.as<T>() + at[1], tb ? K : N, tb}, nullptr,
                  y.as<T>() + t / each * M * N + i * N + j, N, args.worker_as<float>(worker));
      }
    });
  });
}

}  // namespace plmcore::PLM_ISA
