// The dense form of a row-sparse gradient: y[rows[k]] = values[k], zeros elsewhere.   rows [n]; values [n,
// ...]; y [V, ...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor to_dense(const Tensor& sparse) {
  if (!sparse.is_row_sparse()) return sparse;
  const Tensor rows = sparse.rows(), values = sparse.values();
  return dispatch(ops::to_dense, {rows, values}, {{"rows", sparse.shape()[0]}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  require_rows("to_dense", in[0], in[1]);
  Shape shape = in[1].shape;
  shape[0] = attrs.dim("rows");
  return {{shape, in[1].dtype}};
}

const OpDef ops::to_dense = {"to_dense", infer,   no_grad,
                             saves(),    saves(), {.meets = can_meet(DataError::row, DataError::row_order)}};

}  // namespace plmcore
