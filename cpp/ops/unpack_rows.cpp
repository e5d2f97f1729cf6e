// The reverse of pack_rows: y[index[k] / T, index[k] % T] = rows[k], zeros elsewhere.   rows [N, ...]; index
// int64 [N], increasing
// -> [B, T, ...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor unpack_rows(const Tensor& rows, const Tensor& index, Dim B, Dim T) {
  return dispatch(ops::unpack_rows, {rows, index}, {{"shape", Shape{B, T}}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Spec &rows = in[0], &index = in[1];
  check<DTypeError>(index.dtype == DType::int64, "unpack_rows: index must be int64, got ", index);
  check(rows.shape.rank() >= 1 && index.shape.matches({rows.shape[0]}),
        "unpack_rows: rows must be [N, ...] and index [N], got ", rows, " and ", index);
  Shape shape = attrs.dims("shape");
  check<ValueError>(shape.rank() == 2, "unpack_rows: the shape must be [B, T], got ", shape);
  for (int i = 1; i < rows.shape.rank(); ++i) shape.push_back(rows.shape[i]);
  return {{shape, rows.dtype}};
}

static Tensors backward(const Grad& g) {
  const Shape& rows = g.in[0].shape();
  Dim width = 1;
  for (int i = 1; i < rows.rank(); ++i) width = width * rows[i];
  const Shape& shape = g.attrs.dims("shape");
  return {reshape(embedding(reshape(g.dy[0], {shape[0] * shape[1], width}), g.in[1]), rows), {}};
}

const OpDef ops::unpack_rows = {"unpack_rows", infer,
                                backward,      saves(1),
                                saves(),       {.meets = can_meet(DataError::row, DataError::row_order)}};

}  // namespace plmcore
