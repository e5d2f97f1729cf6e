// sqrt(sum of squares over all tensors of the list), float32 []. Undefined tensors are left out. The squares
// are summed in float64 in a fixed order. Row-sparse tensors count by their values: their rows are unique.
#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor global_norm(const Tensors& list) {
  Tensors in;
  for (const Tensor& t : list)
    if (t.defined()) in.push_back(t.is_row_sparse() ? t.values() : t);
  return dispatch(ops::global_norm, Inputs(in))[0];
}

static Specs infer(const InSpecs& in, const Attrs&) {
  for (size_t i = 0; i < in.size(); ++i)
    check<DTypeError>(is_float(in[i].dtype), "global_norm: needs float tensors, got ", in[i], " at ", i);
  return {{{}, DType::float32}};
}

const OpDef ops::global_norm = {"global_norm", infer, no_grad};

}  // namespace plmcore
