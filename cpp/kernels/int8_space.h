// Blocking of products with int8 weights, and the workspace that follows from it. Activations are whole
// numbers of 8 bits or 13. They lie as int16; or, where the processor multiplies bytes (core/isa.h), as int8,
// and those of 13 bits in two parts, 128 times the first and the second, each a row of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plmcore {

// Of activations; up to here the weights as they lie (few_rows.h), several rows at a time.
constexpr int64_t kInt8FewRows = 32;
constexpr int64_t kInt8Panel = 32;  // columns of a panel of B, at most
constexpr size_t kInt8Workspace = 32 << 10;  // of a panel, which stays in L1

template <class X>
struct Int8Blocks {
  enum : int64_t {
    unit = 4 / sizeof(X),  // neighbours along k that one instruction adds up
    depth = kInt8Workspace / (kInt8Panel * sizeof(X)),  // of k at a time
    rows = sizeof(X) == 1 ? 1032 : 384,  // of A, at most, to a tile: a depth of them stays in L2
    columns = sizeof(X) == 1 ? 128 : 768,  // of a tile, at most
  };
};

// The largest activation: its products with K weights of any value add up within int32.
constexpr int64_t activation_most(int64_t bits, int64_t K) {
  const int64_t room = INT32_MAX / (128 * (K > 0 ? K : 1)), most = (int64_t{1} << (bits - 1)) - 1;
  return room < most ? room : most;
}
// A row of activations takes whole units.
template <class X>
constexpr int64_t activation_row(int64_t K) {
  return (K + Int8Blocks<X>::unit - 1) / Int8Blocks<X>::unit * Int8Blocks<X>::unit;
}
// What goes with such a row: what one of its whole numbers is worth, and by how much sums with it are too
// large (kernels/dot.h).
struct ActivationRow {
  float unit;
  int32_t excess;
};
// M rows of activations in `parts`; what goes with them lies behind.
template <class X, int parts>
constexpr size_t activation_bytes(int64_t M, int64_t K) {
  return (static_cast<size_t>(M * parts * activation_row<X>(K)) * sizeof(X) + 63) / 64 * 64;
}
// Two parts are the largest of the forms.
constexpr size_t activation_workspace(int64_t M, int64_t K) {
  return activation_bytes<int8_t, 2>(M, K) + static_cast<size_t>(M) * sizeof(ActivationRow);
}

}  // namespace plmcore
