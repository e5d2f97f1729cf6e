// Shape rules that several ops share.
#pragma once

#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

// NumPy broadcasting; a symbol never broadcasts: it must equal the other size, or the other must be the
// number 1.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

// 0 <= axis < rank after counting from the end.
int normal_axis(const char* op, int64_t axis, int rank);
// The attribute "axis", which kernels take as it is: it does not count from the end any more.
int stored_axis(const char* op, const Attrs& attrs, int rank);

// Same dtype on all given inputs, which must be float.
DType float_dtype(const char* op, const InSpecs& in, std::initializer_list<int> inputs);

// The dtype of sums over elements of this float dtype, and of saved statistics: float64 for float64, else
// float32.
constexpr DType sum_dtype(DType t) { return t == DType::float64 ? DType::float64 : DType::float32; }

// An int64 or int32 tensor.
void require_index(const char* op, const Spec& index);

// An input of this name must be like this.
void require_shape(const char* op, const char* name, const Spec& got, const Shape& want);
void require_spec(const char* op, const char* name, const Spec& got, const Spec& want);

// A weight of fewer bits: int8 with a scale float32 for each of its rows, or bfloat16 without.
void require_scale(const char* op, const InSpecs& in, size_t weight, size_t scale);

// The (seed, offset) of a random op: int64[2].
void require_random(const char* op, const Spec& state);

// Of a row-sparse gradient of [V, ...]: rows int64 [n], values [n, ...] in a float dtype.
void require_rows(const char* op, const Spec& rows, const Spec& values);

// The attribute "eps", 0 or more.
void require_eps(const char* op, const Attrs& attrs);

// A number that elements of the dtype can hold.
void require_element(const char* op, const char* name, double value, DType dtype);

// start <= stop <= size, as far as the sizes are known; a traced program checks it again when it runs.
void require_range(const char* op, Dim start, Dim stop, Dim size);

// dy in its place along an axis of `size`, 0 elsewhere: the gradient of slice and narrow.
Tensor slice_grad(const Tensor& dy, int axis, Dim start, Dim stop, int64_t step, Dim size);

// Shape rules of whole families. Arithmetic: two inputs of one dtype, not bool, that broadcast. Comparison:
// the same with a bool result. Elementwise: a float input, an output like it. Pair: two alike (x or y, and
// dy).
Specs arithmetic_rule(const char* op, const InSpecs& in);
Specs comparison_rule(const char* op, const InSpecs& in);
Specs elementwise_rule(const char* op, const InSpecs& in);
Specs pair_rule(const char* op, const InSpecs& in);
// x or the sum s, gamma, mean, rstd, dy -> dx, dgamma, dbeta
Specs layer_norm_grad_rule(const char* op, const InSpecs& in);

// A list of axes as bits, counted from the end where negative; empty means all. IndexError, ValueError for a
// repeat.
int64_t axes_mask(const char* op, const Axes& axes, int rank);
// The attribute "axes", which holds such bits.
int64_t stored_axes(const char* op, const Attrs& attrs, int rank);
// The shape without the axes of the mask, or with size 1 there.
Shape reduced_shape(const Shape& shape, int64_t axes, bool keepdims);

// Max and min along an axis: the value, and its position, where the gradient goes.
Specs extremum_rule(const char* op, const InSpecs& in, const Attrs& attrs);
Tensors extremum_backward(const Grad& g);

// A gradient of shape dy summed to the shape of an input that was broadcast.
Tensor unbroadcast(const Tensor& dy, const Tensor& like);

}  // namespace plmcore
