// Blocking of matrix products, and the workspace of a worker that follows from it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plmcore {

constexpr int64_t kGemmFewRows = 8;        // up to here: one pass over the weights (few_rows.h)
constexpr int64_t kGemmDepth = 768;       // of k at a time, at most
constexpr int64_t kGemmRows = 192;        // of A at a time: their depth stays in L2
constexpr int64_t kGemmTile = 384;  // rows and columns of a tile, at most, whose worker packs both operands
constexpr int64_t kGemmColumns = 96;  // of a tile at least
constexpr int64_t kGemmStrip = 4 << 20;  // floats of B, at most, that are packed for all workers at once
constexpr int64_t kGemmPanel = 64;  // the width of a panel of B divides this
constexpr int64_t kPackedA = kGemmRows * kGemmDepth + 64;
constexpr int64_t kPackedB = (kGemmTile + kGemmPanel) * kGemmDepth + 64;

// A worker's packed blocks of A and B, and a tile of C for the half types.
constexpr size_t kGemmWorkspace =
    static_cast<size_t>(kPackedA + kPackedB + kGemmTile * kGemmTile) * sizeof(float);

// Columns of B that are packed together: all of them, or an even share that keeps within kGemmStrip.
constexpr int64_t gemm_strip(int64_t N, int64_t K) {
  const int64_t most = kGemmStrip / (K > 0 ? K : 1) > kGemmPanel ? kGemmStrip / (K > 0 ? K : 1) : kGemmPanel;
  const int64_t strips = (N + most - 1) / most, columns = strips > 0 ? (N + strips - 1) / strips : 0;
  return (columns + kGemmPanel - 1) / kGemmPanel * kGemmPanel;
}
// What gemm() packs B into, shared by the workers.
constexpr size_t gemm_shared(int64_t N, int64_t K) {
  return static_cast<size_t>(gemm_strip(N, K) * K + kGemmPanel) * sizeof(float);
}
// Whether A is so small that it is packed instead, in one strip.
constexpr bool gemm_transposes(int64_t M, int64_t K) { return M <= kGemmRows && gemm_strip(M, K) >= M; }

}  // namespace plmcore
