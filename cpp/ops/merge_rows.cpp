// The sum of two row-sparse gradients of one tensor [V, ...]: the union of their rows, sorted; a row of both
// is added.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor merge_rows(const Tensor& a, const Tensor& b) {
  check<DTypeError>(a.is_row_sparse() && b.is_row_sparse(), "merge_rows: needs two row-sparse tensors");
  check(a.shape().matches(b.shape()), "merge_rows: the shapes must agree, got ", a, " and ", b);
  const Tensor rows_a = a.rows(), values_a = a.values(), rows_b = b.rows(), values_b = b.values();
  const Tensors sum = dispatch(ops::merge_rows, {rows_a, values_a, rows_b, values_b});
  return Tensor::row_sparse(sum[0], sum[1], a.shape()[0]);
}

// rows [n], values [n, ...], rows [m], values [m, ...] -> rows [W], values [W, ...]
static Specs infer(const InSpecs& in, const Attrs&) {
  in.expect(4);
  check<DTypeError>(is_float(in[1].dtype) && in[1].dtype == in[3].dtype,
                    "merge_rows: the tensors must have one float dtype, got ", in[1], " and ", in[3]);
  require_rows("merge_rows", in[0], in[1]);
  require_rows("merge_rows", in[2], in[3]);
  Shape shape = in[1].shape;
  shape[0] = in[3].shape[0];
  require_shape("merge_rows", "the second values", in[3], shape);
  shape[0] = Dim::fresh_symbol("W");
  return {{{shape[0]}, DType::int64}, {shape, in[1].dtype}};
}

static SmallVector<int64_t, 2> count_union(const Tensors& in, const Attrs&) {
  const Tensor a = in[0].to(cpu()), b = in[2].to(cpu());
  const int64_t *p = a.as<int64_t>(), *q = b.as<int64_t>(), n = a.numel(), m = b.numel();
  int64_t i = 0, k = 0, count = 0;
  for (; i < n && k < m; ++count) {
    const int64_t x = p[i], y = q[k];
    i += x <= y;
    k += y <= x;
  }
  return {count + (n - i) + (m - k)};
}

// Where each row of the sum comes from in a and in b.
const OpDef ops::merge_rows = {
    "merge_rows", infer,   no_grad,
    saves(),      saves(), {.measure = count_union, .meets = can_meet(DataError::row, DataError::row_order)}};

}  // namespace plmcore
