#include "ops/shape_rules.h"

#include <algorithm>
#include <cmath>

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
      check(require_equal(da, db), op, ": shapes ", a, " and ", b, " do not broadcast: axis ", i - rank,
            " is ", da, " and ", db);
      out.push_back(da.known() ? da : db);
    }
  }
  return out;
}

int normal_axis(const char* op, int64_t axis, int rank) {
  check<IndexError>(axis >= -rank && axis < rank, op, ": axis ", axis, " is out of range for ", rank,
                    " axes");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

int stored_axis(const char* op, const Attrs& attrs, int rank) {
  const int64_t axis = attrs.i("axis");
  check<IndexError>(axis >= 0 && axis < rank, op, ": axis ", axis, " is out of range for ", rank, " axes");
  return static_cast<int>(axis);
}

DType float_dtype(const char* op, const InSpecs& in, std::initializer_list<int> inputs) {
  const Spec& first = in[static_cast<size_t>(*inputs.begin())];
  for (int i : inputs) {
    if (!in.has(static_cast<size_t>(i))) continue;
    const Spec& x = in[static_cast<size_t>(i)];
    check<DTypeError>(is_float(x.dtype), op, ": needs a float dtype, got ", x);
    check<DTypeError>(x.dtype == first.dtype, op, ": inputs must have one dtype, got ", first, " and ", x);
  }
  return first.dtype;
}

void require_index(const char* op, const Spec& index) {
  check<DTypeError>(is_index(index.dtype), op, ": indices must be int64 or int32, got ", index);
}

void require_shape(const char* op, const char* name, const Spec& got, const Shape& want) {
  check(got.shape.matches(want), op, ": ", name, " must be ", want, ", got ", got.shape);
}
void require_spec(const char* op, const char* name, const Spec& got, const Spec& want) {
  check<DTypeError>(got.dtype == want.dtype, op, ": ", name, " must be ", want, ", got ", got);
  require_shape(op, name, got, want.shape);
}
void require_scale(const char* op, const InSpecs& in, size_t weight, size_t scale) {
  const Spec& w = in[weight];
  check<DTypeError>(w.dtype == DType::int8 || w.dtype == DType::bfloat16, op,
                    ": weight must be int8 or bfloat16, got ", w);
  check(in.has(scale) == (w.dtype == DType::int8), op,
        ": an int8 weight needs a scale, and a bfloat16 weight has none; weight is ", w,
        in.has(scale) ? " with a scale" : " without a scale");
  if (in.has(scale)) require_spec(op, "scale", in[scale], {{w.shape[0]}, DType::float32});
}

void require_random(const char* op, const Spec& state) {
  check(state.shape.rank() == 1 && state.shape[0].is(2) && state.dtype == DType::int64, op,
        ": the random state must be int64[2], got ", state);
}
void require_rows(const char* op, const Spec& rows, const Spec& values) {
  check<DTypeError>(rows.dtype == DType::int64 && is_float(values.dtype), op,
                    ": rows must be int64 and values float, got ", rows, " and ", values);
  check(values.shape.rank() >= 1 && rows.shape.matches({values.shape[0]}), op,
        ": rows must be [n] and values [n, ...], got ", rows, " and ", values);
}
void require_eps(const char* op, const Attrs& attrs) {
  check<ValueError>(attrs.f("eps") >= 0, op, ": eps must not be negative, got ", attrs.f("eps"));
}
void require_element(const char* op, const char* name, double value, DType dtype) {
  if (is_float(dtype) || dtype == DType::boolean) return;
  const double half = std::ldexp(1.0, static_cast<int>(8 * size_of(dtype)) - 1);
  const double low = dtype == DType::uint8 ? 0 : -half, high = dtype == DType::uint8 ? 2 * half : half;
  check<ValueError>(value >= low && value < high, op, ": ", name, " must be a number that ", dtype,
                    " can hold, got ", value);
}

void require_range(const char* op, Dim start, Dim stop, Dim size) {
  const bool ordered = !start.known() || !stop.known() || start.value() <= stop.value();
  const bool inside = !stop.known() || !size.known() || stop.value() <= size.value();
  check<IndexError>(ordered && inside, op, ": the range [", start, ", ", stop,
                    ") is not inside an axis of size ", size);
}

Specs arithmetic_rule(const char* op, const InSpecs& in) {
  in.expect(2);
  check<DTypeError>(in[0].dtype == in[1].dtype, op, ": inputs must have one dtype, got ", in[0], " and ",
                    in[1]);
  check<DTypeError>(in[0].dtype != DType::boolean, op,
                    ": not defined on bool; use logical_and, logical_or or cast");
  return {{broadcast_shapes(op, in[0].shape, in[1].shape), in[0].dtype}};
}

Specs comparison_rule(const char* op, const InSpecs& in) {
  in.expect(2);
  check<DTypeError>(in[0].dtype == in[1].dtype, op, ": inputs must have one dtype, got ", in[0], " and ",
                    in[1]);
  return {{broadcast_shapes(op, in[0].shape, in[1].shape), DType::boolean}};
}

Specs elementwise_rule(const char* op, const InSpecs& in) {
  in.expect(1);
  float_dtype(op, in, {0});
  return {in[0]};
}

Specs pair_rule(const char* op, const InSpecs& in) {
  in.expect(2);
  float_dtype(op, in, {0, 1});
  check(in[0].shape.matches(in[1].shape), op, ": inputs must have one shape, got ", in[0], " and ", in[1]);
  return {in[0]};
}

Specs layer_norm_grad_rule(const char* op, const InSpecs& in) {
  const DType dtype = float_dtype(op, in, {0, 1, 4});
  const Spec &x = in[0], &gamma = in[1];
  check(x.shape.rank() >= 1, op, ": x must have at least one axis, got ", x);
  require_shape(op, "gamma", gamma, {x.shape.back()});
  const Spec stats = {x.shape.drop_last(), sum_dtype(dtype)};
  require_spec(op, "mean", in[2], stats);
  require_spec(op, "rstd", in[3], stats);
  require_shape(op, "dy", in[4], x.shape);
  return {x, gamma, gamma};
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

int64_t stored_axes(const char* op, const Attrs& attrs, int rank) {
  const int64_t axes = attrs.i("axes");
  check<IndexError>(axes >= 0 && axes < int64_t{1} << rank, op, ": the axes must be bits of ", rank,
                    " axes, got ", axes);
  return axes;
}

Shape reduced_shape(const Shape& shape, int64_t axes, bool keepdims) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!(axes >> i & 1)) out.push_back(shape[i]);
    else if (keepdims) out.push_back(1);
  }
  return out;
}

Specs extremum_rule(const char* op, const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  const int axis = stored_axis(op, attrs, in[0].shape.rank());
  check(!in[0].shape[axis].is(0), op, ": axis ", axis, " of ", in[0], " has no elements");
  const int64_t mask = int64_t{1} << axis;
  return {{reduced_shape(in[0].shape, mask, attrs.flag("keepdims")), in[0].dtype},
          {reduced_shape(in[0].shape, mask, true), DType::int64}};
}

Tensors extremum_backward(const Grad& g) {
  const int64_t axis = g.attrs.i("axis");
  const Tensor dy = reshape(g.dy[0], g.out[1].shape());
  return dispatch(ops::gather_grad, {dy, g.out[1]},
                  {{"axis", axis}, {"size", g.in[0].shape()[static_cast<int>(axis)]}});
}

Tensor unbroadcast(const Tensor& dy, const Tensor& like) {
  const Shape &from = dy.shape(), &to = like.shape();
  bool equal = from.rank() == to.rank();
  for (int i = 0; equal && i < from.rank(); ++i) equal = same(from[i], to[i]);
  return equal ? dy : sum_to(dy, to);
}

}  // namespace plmcore
