// Every |step|-th element of the range [start, stop) of an axis; a negative step begins at the range's end:
// step 1 of [2, 6) is 2 3 4 5, step 2 is 2 4, step -1 is 5 4 3 2, step -2 is 5 3.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor slice(const Tensor& x, int axis, Dim start, Dim stop, int64_t step) {
  return dispatch(
      ops::slice, {x},
      {{"axis", normal_axis("slice", axis, x.rank())}, {"start", start}, {"stop", stop}, {"step", step}})[0];
}
Tensor slice_grad(const Tensor& dy, int axis, Dim start, Dim stop, int64_t step, Dim size) {
  return dispatch(ops::slice_grad, {dy},
                  {{"axis", axis}, {"start", start}, {"stop", stop}, {"step", step}, {"size", size}})[0];
}

// ceil((stop - start) / |step|); over symbols only what divides without remainder has a form.
static Dim count(Dim start, Dim stop, int64_t step) {
  const Dim length = stop - start;
  const int64_t stride = step < 0 ? -step : step;
  if (stride == 1) return length;
  return length.known() ? Dim(length.value() / stride + (length.value() % stride != 0))
                        : divide(length, stride);
}

// How many elements the attributes take from an axis of this size.
static Dim taken(const char* op, const Attrs& attrs, Dim size) {
  const Dim start = attrs.dim("start"), stop = attrs.dim("stop");
  const int64_t step = attrs.i("step");
  check<ValueError>(step != 0 && step != INT64_MIN, op, ": step must not be 0, got ", step);
  require_range(op, start, stop, size);
  return count(start, stop, step);
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  Shape shape = in[0].shape;
  const int axis = stored_axis("slice", attrs, shape.rank());
  shape[axis] = taken("slice", attrs, shape[axis]);
  return {{shape, in[0].dtype}};
}

static Tensors backward(const Grad& g) {
  const int axis = static_cast<int>(g.attrs.i("axis"));
  return {slice_grad(g.dy[0], axis, g.attrs.dim("start"), g.attrs.dim("stop"), g.attrs.i("step"),
                     g.in[0].shape()[axis])};
}

const OpDef ops::slice = {"slice", infer, backward, saves(), saves()};

// dy -> dx: dy in its place along the axis of size `size`, 0 elsewhere
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  Shape shape = in[0].shape;
  const int axis = stored_axis("slice_grad", attrs, shape.rank());
  const Dim size = attrs.dim("size"), count = taken("slice_grad", attrs, size);
  check(require_equal(shape[axis], count), "slice_grad: axis ", axis, " of dy must be ", count, ", got ",
        in[0]);
  shape[axis] = size;
  return {{shape, in[0].dtype}};
}

const OpDef ops::slice_grad = {"slice_grad", infer_grad, no_grad};

}  // namespace plmcore
