// Blocking of products with int8 weights, and the workspace that follows from it; the op definition needs the latter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plmcore {

constexpr int64_t kInt8FewRows = 32;   // up to here: the weights as they lie (few_rows.h), several rows at a time
constexpr int64_t kInt8Depth = 512;    // of k at a time: a panel of B of that depth stays in L1
constexpr int64_t kInt8Rows = 384;     // of A, at most, that pass over a panel: their depth stays in L2
constexpr int64_t kInt8Columns = 768;  // of a tile at most
constexpr int64_t kInt8Panel = 32;     // columns of a panel, at most
constexpr size_t kInt8Workspace = static_cast<size_t>(kInt8Panel * kInt8Depth) * sizeof(int16_t);

constexpr int64_t kActivationMost = 4095;  // the largest activation, where the sum has room for it
// The largest activation whose products with K weights of any value add up within int32.
constexpr int64_t activation_most(int64_t K) {
  const int64_t room = INT32_MAX / (128 * (K > 0 ? K : 1));
  return room < kActivationMost ? room : kActivationMost;
}
// A row of activations takes an even number of places.
constexpr int64_t activation_row(int64_t K) { return (K + 1) / 2 * 2; }
// What holds M rows of activations, and behind them a scale for each.
constexpr size_t activation_bytes(int64_t M, int64_t K) {
  return static_cast<size_t>(M * activation_row(K)) * 2 + static_cast<size_t>(M) * 4 + 128;
}

}  // namespace plmcore
