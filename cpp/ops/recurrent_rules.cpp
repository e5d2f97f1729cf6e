#include "ops/recurrent_rules.h"

namespace plmcore {

Recurrence recurrence_of(const char* op, const Spec& weight, int64_t gates) {
  check<DTypeError>(is_float(weight.dtype), op, ": needs a float dtype, got ", weight);
  check(weight.shape.rank() == 2 && weight.shape.known() && weight.shape[0].value() % gates == 0, op,
        ": weight must be [", gates, " H, P], got ", weight.shape);
  Recurrence n{.dtype = weight.dtype};
  n.H = weight.shape[0].value() / gates;
  n.P = weight.shape[1].value();
  return n;
}

void require_steps(const char* op, const char* name, const Spec& got, const Recurrence& n, int64_t width) {
  require_spec(op, name, got, {{n.B, n.T, width}, n.dtype});
}

void require_state(const char* op, const char* name, const Spec& got, const Recurrence& n, int64_t width) {
  require_spec(op, name, got, {{n.B, width}, n.dtype});
}

void require_lengths(const char* op, const InSpecs& in, size_t i, const Recurrence& n) {
  if (!in.has(i)) return;
  check<DTypeError>(is_index(in[i].dtype), op, ": lengths must be int64 or int32, got ", in[i]);
  check(in[i].shape.matches({n.B}), op, ": lengths must be [", n.B, "], one per sequence, got ", in[i].shape);
}

}  // namespace plmcore
