// dense + a row-sparse gradient: y = dense, y[rows[k]] += values[k].   dense [V, ...]; rows [n]; values [n,
// ...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor add_rows(const Tensor& dense, const Tensor& sparse) {
  check<DTypeError>(!dense.is_row_sparse() && sparse.is_row_sparse(),
                    "add_rows: needs a dense and a row-sparse tensor");
  check(dense.shape().matches(sparse.shape()), "add_rows: the shapes must agree, got ", dense, " and ",
        sparse);
  const Tensor rows = sparse.rows(), values = sparse.values();
  return dispatch(ops::add_rows, {dense, rows, values})[0];
}

static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(3);
  check<DTypeError>(is_float(in[0].dtype) && in[0].dtype == in[2].dtype,
                    "add_rows: the tensors must have one float dtype, got ", in[0], " and ", in[2]);
  require_rows("add_rows", in[1], in[2]);
  check(in[0].shape.rank() >= 1, "add_rows: the dense tensor must have at least one axis, got ", in[0]);
  Shape want = in[0].shape;
  want[0] = in[2].shape[0];
  require_shape("add_rows", "values", in[2], want);
  return {in[0]};
}

const OpDef ops::add_rows = {"add_rows", infer,   no_grad,
                             saves(),    saves(), {.meets = can_meet(DataError::row, DataError::row_order)}};

}  // namespace plmcore
