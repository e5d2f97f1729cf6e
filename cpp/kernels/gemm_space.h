// Blocking of matrix products, and the workspace of a worker that follows from it; the op definitions need the latter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plmcore {

constexpr int64_t kGemmDepth = 384;  // of k at a time: that many rows of a panel of B stay in L1
constexpr int64_t kGemmRows = 96;    // of A at a time: kGemmRows * kGemmDepth floats in L2
constexpr int64_t kGemmTile = 384;   // rows and columns of a tile at most
constexpr int64_t kPackedA = kGemmRows * kGemmDepth + 64;
constexpr int64_t kPackedB = (kGemmTile + 64) * kGemmDepth + 64;

// Packed blocks of A and B, and a tile of C for the half types.
constexpr size_t kGemmWorkspace = static_cast<size_t>(kPackedA + kPackedB + kGemmTile * kGemmTile) * sizeof(float);

}  // namespace plmcore
