// Kernels that need several buffers: one place says which, for the workspace and for the run.
#pragma once

#include "device/kernel.h"

namespace plmcore::cuda {

// Parts of the workspace, one after the other; without a base it only counts.
struct Parts {
  char* base = nullptr;
  size_t used = 0;

  template <class X>
  X* take(int64_t n) {
    char* p = base ? base + used : nullptr;
    used += (static_cast<size_t>(n) * sizeof(X) + 63) / 64 * 64;
    return reinterpret_cast<X*>(p);
  }
};

// A kernel as a class of the element type: its constructor takes its parts, run() computes. Each has a name
// of its own: g++ gives functions of a template from an unnamed namespace external linkage, and two of one
// name would become one.
template <template <class> class Pass>
Workspace space_of(const KernelArgs& args) {
  size_t bytes = 0;
  for_float(args.in[0].dtype, [&](auto type) {
    bytes = Pass<typename decltype(type)::type>(args, nullptr).parts.used;
    return static_cast<const char*>(nullptr);
  });
  return {.shared = bytes};
}
template <template <class> class Pass>
const char* run_pass(const KernelArgs& args) {
  return for_float(args.in[0].dtype,
                   [&](auto type) { return Pass<typename decltype(type)::type>(args, args.shared).run(); });
}

}  // namespace plmcore::cuda
