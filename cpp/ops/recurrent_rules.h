// Shape rules that the recurrent ops share.
#pragma once

#include "ops/shape_rules.h"

namespace plmcore {

// One layer in one direction: B sequences of T steps, H units, P values of h.
struct Recurrence {
  DType dtype;
  Dim B, T;
  int64_t H, P;
};

// weight [gates H, P]: the sizes that follow from it; the rest comes from the text.
Recurrence recurrence_of(const char* op, const Spec& weight, int64_t gates);
// x or dy, [B, T, width] in the dtype of the weight.
void require_steps(const char* op, const char* name, const Spec& got, const Recurrence& n, int64_t width);
// h or c, [B, width] in the dtype of the weight.
void require_state(const char* op, const char* name, const Spec& got, const Recurrence& n, int64_t width);
// int64 or int32 [B], if given.
void require_lengths(const char* op, const InSpecs& in, size_t i, const Recurrence& n);

}  // namespace plmcore
