// Test builds only: one kernel gives slightly wrong values. It shows that an op's declaration notices them.
#pragma once

#ifdef PLM_TEST_HOOKS

#include <cstdint>
#include <string_view>

#include "core/kernel_args.h"

namespace plmcore {

// From now on the CPU's kernel of the op with this name spoils what it writes; "" for none. `written` counts
// its outputs, then the inputs that it writes. Mutations:
//   scale   every value
//   lane    one position in every 8
//   last    the last value
//   row     one row in the middle, where there are two at least
// A float changes by `part` of it (a float32 by 2^-10 at least, one of 16 bits by half of `part` at least), a
// zero to `part` unless all are scaled; an integer by one, a bool to the other.
void perturb_kernel(std::string_view op, std::string_view mutation, int written, double part);

// What became of it since: values that changed, and tensors that a call writes.
struct Perturbed {
  int64_t values = 0;
  int tensors = 0;
};
Perturbed perturbed();

void perturb(int id, const KernelArgs& args);  // after the kernel of op `id` has run

}  // namespace plmcore

#endif
