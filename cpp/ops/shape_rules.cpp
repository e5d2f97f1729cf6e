#include "ops/shape_rules.h"

#include <algorithm>

#include "plmcore/ops.h"

namespace plmcore {

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const Dim da = ia < 0 ? Dim(1) : a[ia], db = ib < 0 ? Dim(1) : b[ib];
    if (same(da, db) || db.is(1)) out.push_back(da);
    else if (da.is(1)) out.push_back(db);
    else {
      check(require_equal(da, db), op, ": shapes ", a, " and ", b, " do not broadcast: axis ", i - rank, " is ", da, " and ", db);
      out.push_back(da.known() ? da : db);
    }
  }
  return out;
}

int normal_axis(const char* op, int64_t axis, int rank) {
  check<IndexError>(axis >= -rank && axis < rank, op, ": axis ", axis, " is out of range for ", rank, " axes");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

DType float_dtype(const char* op, const InSpecs& in, std::initializer_list<int> inputs) {
  const Spec* first = nullptr;
  for (int i : inputs) {
    if (!in.has(i)) continue;
    check<DTypeError>(is_float(in[i].dtype), op, ": needs a float dtype, got ", in[i]);
    if (!first) first = &in[i];
    check<DTypeError>(in[i].dtype == first->dtype, op, ": inputs must have one dtype, got ", *first, " and ", in[i]);
  }
  return first->dtype;
}

void require_index(const char* op, const Spec& index) {
  check<DTypeError>(is_index(index.dtype), op, ": indices must be int64 or int32, got ", index);
}

void require_range(const char* op, Dim start, Dim stop, Dim size) {
  const bool ordered = !start.known() || !stop.known() || start.value() <= stop.value();
  const bool inside = !stop.known() || !size.known() || stop.value() <= size.value();
  check<IndexError>(ordered && inside, op, ": the range [", start, ", ", stop, ") is not inside an axis of size ", size);
}

Workspace float_sums(const View*, const View* out, const Attrs&) {
  return {.shared = size_of(out[0].dtype) == 2 ? static_cast<size_t>(out[0].numel) * sizeof(float) : 0};
}

Specs arithmetic_rule(const char* op, const InSpecs& in) {
  check<DTypeError>(in[0].dtype == in[1].dtype, op, ": inputs must have one dtype, got ", in[0], " and ", in[1]);
  check<DTypeError>(in[0].dtype != DType::boolean, op, ": not defined on bool; use logical_and, logical_or or cast");
  return {{broadcast_shapes(op, in[0].shape, in[1].shape), in[0].dtype}};
}

Specs comparison_rule(const char* op, const InSpecs& in) {
  check<DTypeError>(in[0].dtype == in[1].dtype, op, ": inputs must have one dtype, got ", in[0], " and ", in[1]);
  return {{broadcast_shapes(op, in[0].shape, in[1].shape), DType::boolean}};
}

Specs elementwise_rule(const char* op, const InSpecs& in) {
  float_dtype(op, in, {0});
  return {in[0]};
}

Specs pair_rule(const char* op, const InSpecs& in) {
  float_dtype(op, in, {0, 1});
  check(in[0].shape.matches(in[1].shape), op, ": inputs must have one shape, got ", in[0], " and ", in[1]);
  return {in[0]};
}

int64_t axes_mask(const char* op, const Axes& axes, int rank) {
  if (axes.empty()) return (int64_t{1} << rank) - 1;
  int64_t mask = 0;
  for (int axis : axes) {
    const int64_t bit = int64_t{1} << normal_axis(op, axis, rank);
    check<ValueError>(!(mask & bit), op, ": axis ", axis, " is listed twice");
    mask |= bit;
  }
  return mask;
}

Shape reduced_shape(const Shape& shape, int64_t axes, bool keepdims) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!(axes >> i & 1)) out.push_back(shape[i]);
    else if (keepdims) out.push_back(1);
  }
  return out;
}

Tensor unbroadcast(const Tensor& dy, const Tensor& like) {
  const Shape &from = dy.shape(), &to = like.shape();
  bool equal = from.rank() == to.rank();
  for (int i = 0; equal && i < from.rank(); ++i) equal = same(from[i], to[i]);
  return equal ? dy : sum_to(dy, to);
}

}  // namespace plmcore
