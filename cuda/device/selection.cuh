// Rows of x that a test picks: their numbers first, in order (device/scan.cuh), then the rows.
#pragma once

#include "device/indexed.cuh"
#include "device/scan.cuh"

namespace plmcore::cuda {

// Test(r) says whether row r is chosen; at most `most` are, by the same test on the host.
template <class Test>
struct Chosen {
  Test test;
  int64_t* index;
  int64_t most;

  __device__ __forceinline__ bool chosen(int64_t r) const { return test(r); }
  __device__ __forceinline__ void put(int64_t k, int64_t r) const {
    if (k < most) index[k] = r;
  }
};
template <class Test>
const char* choose_rows(const KernelArgs& args, const Test& test, int64_t n, const View& index) {
  return pick(args, Chosen<Test>{test, index.as<int64_t>(), index.numel}, n, args.shared_as<int64_t>());
}
inline Workspace choose_workspace(const KernelArgs& args) { return {.shared = pick_bytes(args.in[1].numel)}; }

// y[k] = x[index[k]], x being `rows` rows.
inline const char* take_chosen(const KernelArgs& args, ops::Id op, const View& x, int64_t rows,
                               const View& index, const View& y) {
  return take<IndexOf::position>(args, op, x, index, y,
                                 {1, rows, index.numel, index.numel ? y.numel / index.numel : 0});
}

}  // namespace plmcore::cuda
