// The ops that are also methods of plm.Tensor.
#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/tensor.h"

namespace plmcore::bindings {

namespace {

// reshape(2, 3) and reshape((2, 3)).
nb::handle one_or_all(const nb::args& a) {
  if (a.size() == 1 && (PyTuple_Check(a[0].ptr()) || PyList_Check(a[0].ptr()))) return a[0];
  return a;
}

Tensor reshape_to(const Tensor& x, nb::handle sizes) {
  Shape shape;
  int free = -1;
  Dim rest = 1;
  int i = 0;
  for (nb::handle h : sizes) {
    if (PyLong_Check(h.ptr()) && PyLong_AsLong(h.ptr()) == -1 && !PyErr_Occurred()) {
      check(free < 0, "reshape: only one size can be -1");
      free = i;
      shape.push_back(1);
    } else {
      PyErr_Clear();
      shape.push_back(to_dim(h));
      rest = rest * shape.back();
    }
    ++i;
  }
  if (free >= 0) {
    const Dim all = x.shape().numel();
    check(!rest.is(0), "reshape: with a size of 0 beside it, -1 has no meaning; x is ", x);
    check(!all.known() || !rest.known() || all.value() % rest.value() == 0, "reshape: ", x,
          " does not divide into the other sizes, ", rest);
    shape[free] = divide(all, rest);
  }
  return reshape(x, shape);
}

Tensor reversed(const Tensor& x) {
  Axes order;
  for (int a = x.rank() - 1; a >= 0; --a) order.push_back(a);
  return transpose(x, order);
}
Tensor permuted(const Tensor& x, nb::args axes) {
  if (axes.size() == 0) return reversed(x);
  return transpose(x, to_axes(one_or_all(axes)));
}
int axis_of(const char* method, int axis, int rank) {
  check<IndexError>(axis >= -rank && axis < rank, method, ": axis ", axis, " is out of range for ", rank,
                    " axes");
  return axis < 0 ? axis + rank : axis;
}
Tensor swapped(const Tensor& x, int a, int b) {
  Axes order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(axis_of("swapaxes", a, x.rank()))],
            order[static_cast<size_t>(axis_of("swapaxes", b, x.rank()))]);
  return transpose(x, order);
}
Tensor flattened(const Tensor& x, int start, int end) {
  if (x.rank() == 0) return reshape(x, {1});
  start = axis_of("flatten", start, x.rank());
  end = axis_of("flatten", end, x.rank());
  Shape shape;
  for (int a = 0; a < x.rank(); ++a) {
    if (a > start && a <= end) shape[start] = shape[start] * x.shape()[a];
    else shape.push_back(x.shape()[a]);
  }
  return reshape(x, shape);
}
Tensor squeezed(const Tensor& x, std::optional<int> axis) {
  Shape shape;
  const int only = axis ? axis_of("squeeze", *axis, x.rank()) : -1;
  for (int a = 0; a < x.rank(); ++a) {
    const bool goes = only < 0 ? x.shape()[a].is(1) : a == only;
    if (goes) check(require_equal(x.shape()[a], 1), "squeeze: axis ", a, " of ", x, " has not the size 1");
    else shape.push_back(x.shape()[a]);
  }
  return reshape(x, shape);
}
Tensor unsqueezed(const Tensor& x, int axis) {
  const int at = axis_of("unsqueeze", axis, x.rank() + 1);
  Shape shape;
  for (int a = 0; a <= x.rank(); ++a) {
    if (a == at) shape.push_back(1);
    if (a < x.rank()) shape.push_back(x.shape()[a]);
  }
  return reshape(x, shape);
}

// max, min and argmax over all elements when there is no axis.
template <class F>
Tensor over_axis(const Tensor& x, std::optional<int> axis, bool keepdims, F f) {
  const ReleaseGil nogil(x);
  if (axis) return f(x, *axis, keepdims);
  const Tensor y = f(reshape(x, {x.shape().numel()}), 0, false);
  if (!keepdims) return y;
  Shape ones;
  for (int k = 0; k < x.rank(); ++k) ones.push_back(1);
  return reshape(y, ones);
}

template <Tensor (*F)(const Tensor&)>
Tensor unary(const Tensor& x) {
  const ReleaseGil nogil(x);
  return F(x);
}

// to("cuda"), to("float16"), to(np.float16)
Tensor moved(const Tensor& x, nb::handle target) {
  if (nb::isinstance<nb::str>(target)) {
    const auto name = nb::cast<std::string_view>(target);
    for (int i = 0; i < kDTypes; ++i)
      if (name == name_of(static_cast<DType>(i))) return x.to(static_cast<DType>(i));
    return x.to(device_from_name(name));
  }
  return x.to(to_dtype(target));
}

}  // namespace

void bind_methods(TensorClass& c) {
  c.def(
       "reshape", [](const Tensor& x, nb::args shape) { return reshape_to(x, one_or_all(shape)); },
       nb::sig("def reshape(self, *shape: int | Dim | Sequence[int | Dim]) -> Tensor"),
       "Another shape over the same memory; one size may be -1.")
      .def("transpose", &permuted, nb::sig("def transpose(self, *axes: int | Sequence[int]) -> Tensor"),
           "The axes in another order; reversed without arguments.")
      .def("permute", &permuted, nb::sig("def permute(self, *axes: int | Sequence[int]) -> Tensor"),
           "The axes in another order.")
      .def_prop_ro("T", &reversed, "The axes in reverse order.")
      .def("swapaxes", &swapped, "a"_a, "b"_a, "Two axes exchanged.")
      .def("flatten", &flattened, "start"_a = 0, "end"_a = -1, "The axes from start to end as one.")
      .def("squeeze", &squeezed, "axis"_a = nb::none(),
           "Without an axis of size 1; without all of them when none is named.")
      .def("unsqueeze", &unsqueezed, "axis"_a, "With a new axis of size 1.")
      .def(
          "broadcast_to",
          [](const Tensor& x, nb::args shape) { return broadcast_to(x, to_shape(one_or_all(shape))); },
          nb::sig("def broadcast_to(self, *shape: int | Dim | Sequence[int | Dim]) -> Tensor"),
          "Repeated to a larger shape by NumPy's rules.")
      .def(
          "split", [](const Tensor& x, Dims sizes, int axis) { return split(x, sizes, axis); }, "sizes"_a,
          "axis"_a = 0, "Parts of these sizes along an axis.")
      .def(
          "astype",
          [](const Tensor& x, DType dtype) {
            const ReleaseGil nogil(x);
            return x.to(dtype);
          },
          "dtype"_a, "In another dtype; the tensor itself when it has it.")
      .def("to", &moved, "target"_a, "On another device, or in another dtype.")
      .def(
          "copy",
          [](const Tensor& x) {
            const ReleaseGil nogil(x);
            return copy(x);
          },
          "In new memory; gradients pass.")
      .def(
          "clone",
          [](const Tensor& x) {
            const ReleaseGil nogil(x);
            return copy(x);
          },
          "In new memory; gradients pass.")
      .def(
          "sum",
          [](const Tensor& x, Axes axis, bool keepdims) {
            const ReleaseGil nogil(x);
            return sum(x, axis, keepdims);
          },
          "axis"_a = nb::none(), "keepdims"_a = false, "The sum over axes; over all without `axis`.")
      .def(
          "mean",
          [](const Tensor& x, Axes axis, bool keepdims) {
            const ReleaseGil nogil(x);
            return mean(x, axis, keepdims);
          },
          "axis"_a = nb::none(), "keepdims"_a = false, "The mean over axes; over all without `axis`.")
      .def(
          "max",
          [](const Tensor& x, std::optional<int> axis, bool keepdims) {
            return over_axis(x, axis, keepdims, [](auto&&... a) { return max(a...); });
          },
          "axis"_a = nb::none(), "keepdims"_a = false,
          "The largest value along an axis; of all without `axis`.")
      .def(
          "min",
          [](const Tensor& x, std::optional<int> axis, bool keepdims) {
            return over_axis(x, axis, keepdims, [](auto&&... a) { return min(a...); });
          },
          "axis"_a = nb::none(), "keepdims"_a = false,
          "The smallest value along an axis; of all without `axis`.")
      .def(
          "argmax",
          [](const Tensor& x, std::optional<int> axis, bool keepdims) {
            return over_axis(x, axis, keepdims, [](auto&&... a) { return argmax(a...); });
          },
          "axis"_a = nb::none(), "keepdims"_a = false,
          "The index of the largest value along an axis; of all without `axis`.")
      .def(
          "cumsum",
          [](const Tensor& x, int axis) {
            const ReleaseGil nogil(x);
            return cumsum(x, axis);
          },
          "axis"_a, "Sums of the values up to each place along an axis.")
      .def("softmax", &unary<softmax>, "Over the last axis.")
      .def("log_softmax", &unary<log_softmax>, "Over the last axis.")
      .def("exp", &unary<exp>, "e^x.")
      .def("log", &unary<log>, "The natural logarithm.")
      .def("sqrt", &unary<sqrt>, "The square root.")
      .def("rsqrt", &unary<rsqrt>, "1 / sqrt(x).")
      .def("abs", &unary<abs>, "|x|.")
      .def("tanh", &unary<tanh>, "tanh(x).")
      .def("sigmoid", &unary<sigmoid>, "1 / (1 + e^-x).")
      .def("relu", &unary<relu>, "max(x, 0).")
      .def("silu", &unary<silu>, "x * sigmoid(x).")
      .def(
          "gelu",
          [](const Tensor& x, bool tanh_form) {
            const ReleaseGil nogil(x);
            return gelu(x, tanh_form);
          },
          "tanh_form"_a = false, "x Phi(x), or its tanh approximation.");
}

}  // namespace plmcore::bindings
