// x[...]: integers, slices, None, Ellipsis, one integer array, or one boolean mask. What touches only the
// first axis, or single elements of leading axes, is a view.
#include <optional>

#include "bindings/tensor.h"
#include "core/device.h"

namespace plmcore::bindings {

namespace {

Dim from_end(Dim size, int64_t i) { return i < 0 ? size - Dim(-i) : Dim(i); }

int64_t whole(nb::handle h) {
  const Py_ssize_t n = PyNumber_AsSsize_t(h.ptr(), PyExc_IndexError);
  if (n == -1 && PyErr_Occurred()) throw nb::python_error();
  return n;
}

// start or stop of a slice over symbols: what a number would be clamped to is not known, so nothing is; the
// program checks the range when it runs.
Dim bound(nb::handle h, Dim size, Dim missing) {
  if (h.is_none()) return missing;
  if (is_symbolic(h)) return to_dim(h);
  return from_end(size, whole(h));
}

struct Range {
  Dim start, stop;  // of ops::slice: a negative step begins at the end of the range
  int64_t step;
};
Range range_of(nb::handle h, Dim size) {
  auto* s = reinterpret_cast<PySliceObject*>(h.ptr());
  if (size.known() && !is_symbolic(s->start) && !is_symbolic(s->stop)) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(h.ptr(), &start, &stop, &step) != 0) throw nb::python_error();
    const Py_ssize_t n = PySlice_AdjustIndices(size.rep(), &start, &stop, step);
    if (n == 0) return {0, 0, 1};
    const int64_t last = start + (n - 1) * step;
    return step > 0 ? Range{start, last + 1, step} : Range{last, start + 1, step};
  }
  const int64_t step = s->step == Py_None ? 1 : whole(s->step);
  if (step > 0) return {bound(s->start, size, 0), bound(s->stop, size, size), step};
  check<ValueError>(step < 0, "slice step cannot be zero");
  const nb::handle stop = s->stop;
  return {stop.is_none() ? Dim(0) : bound(stop, size, 0) + 1,
          nb::handle(s->start).is_none() ? size : bound(s->start, size, size) + 1, step};
}

Tensor take_range(const Tensor& x, int axis, const Range& r) {
  const Dim size = x.shape()[axis];
  if (r.step == 1 && r.start.is(0) && same(r.stop, size)) return x;
  if (axis == 0 && r.step == 1) return narrow(x, r.start, r.stop - r.start);
  return slice(x, axis, r.start, r.stop, r.step);
}
Tensor drop_axis(const Tensor& x, int axis) {
  Shape shape;
  for (int a = 0; a < x.rank(); ++a)
    if (a != axis) shape.push_back(x.shape()[a]);
  return reshape(x, shape);
}
Tensor take_one(const Tensor& x, int axis, nb::handle h) {
  const Dim size = x.shape()[axis];
  Dim at;
  if (is_symbolic(h)) at = to_dim(h);
  else {
    const int64_t i = whole(h);
    check<IndexError>(!size.known() || (i >= -size.rep() && i < size.rep()), "index ", i,
                      " is out of range for axis ", axis, " of ", x);
    at = from_end(size, i);
  }
  return drop_axis(take_range(x, axis, {at, at + 1, 1}), axis);
}

// Where a mask is true, as numbers of its elements in order.
Tensor true_positions(const Tensor& mask) {
  const Tensor m = mask.detach().to(cpu());
  check<TraceError>(m.has_data(),
                    "a boolean mask cannot index while tracing: the size of the result is not known; use "
                    "ops.pack_rows, or where");
  const int64_t n = m.numel();
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += m.as<uint8_t>()[i] != 0;
  Tensor index = Tensor::empty({count}, DType::int64);
  for (int64_t i = 0, k = 0; i < n; ++i)
    if (m.as<uint8_t>()[i]) index.as<int64_t>()[k++] = i;
  return index.to(mask.device());
}

Tensor take_mask(const Tensor& x, int axis, const Tensor& mask) {
  const int n = mask.rank();
  Shape shape;
  Dim merged = 1;
  for (int a = 0; a < x.rank(); ++a) {
    if (a < axis || a >= axis + n) shape.push_back(x.shape()[a]);
    else {
      const Dim d = x.shape()[a];
      check<IndexError>(require_equal(d, mask.shape()[a - axis]),
                        "a boolean mask must have the sizes of the axes it selects from, got ", mask,
                        " at axis ", axis, " of ", x);
      merged = merged * d;
      if (a == axis + n - 1) shape.push_back(merged);
    }
  }
  if (n == 0) {  // a single truth value selects all or nothing along a new axis
    Shape with = {1};
    for (Dim d : x.shape()) with.push_back(d);
    return index_select(reshape(x, with), true_positions(mask), 0);
  }
  return index_select(reshape(x, shape), true_positions(mask), axis);
}

// Negative numbers of an index array count from the end, as those of a single index do.
Tensor take_array(const Tensor& x, int axis, Tensor index) {
  check<IndexError>(index.dtype() != DType::boolean && !is_float(index.dtype()),
                    "an index array must be of integers or bool, got ", index);
  if (!is_index(index.dtype())) index = cast(index, DType::int64);
  if (index.has_data() && index.device().is_cpu() && x.shape()[axis].known()) {
    const int64_t size = x.shape()[axis].rep(), n = index.numel();
    bool negative = false;
    auto wrap = [&]<class I>(I* p, I* out) {
      for (int64_t i = 0; i < n; ++i) {
        if (!out) negative |= p[i] < 0;
        else out[i] = p[i] < 0 && p[i] >= -size ? static_cast<I>(p[i] + size) : p[i];
      }
    };
    const bool wide = index.dtype() == DType::int64;
    if (wide) wrap(index.as<int64_t>(), static_cast<int64_t*>(nullptr));
    else wrap(index.as<int32_t>(), static_cast<int32_t*>(nullptr));
    if (negative) {
      Tensor positive = Tensor::empty(index.shape(), index.dtype());
      if (wide) wrap(index.as<int64_t>(), positive.as<int64_t>());
      else wrap(index.as<int32_t>(), positive.as<int32_t>());
      index = positive;
    }
  }
  return index_select(x, index.to(x.device()), axis);
}

bool is_index_array(nb::handle h) {
  if (nb::isinstance<Tensor>(h) || PyList_Check(h.ptr()) || PyBool_Check(h.ptr())) return true;
  return is_array(h) &&
         (PyObject_TypeCheck(h.ptr(), reinterpret_cast<PyTypeObject*>(numpy().ndarray.ptr())) ||
          !PyIndex_Check(h.ptr()));
}
Tensor index_tensor(nb::handle h) {
  if (nb::isinstance<Tensor>(h)) return nb::cast<const Tensor&>(h);
  if (PyList_Check(h.ptr()) && PyList_Size(h.ptr()) == 0) return Tensor::empty({0}, DType::int64);
  return copy_array(h, nb::none());
}

Tensor get(const Tensor& x, nb::handle key) {
  // One item: no tuple to unpack.
  if (PyLong_CheckExact(key.ptr()) && x.rank() > 0) return take_one(x, 0, key);
  if (PySlice_Check(key.ptr()) && x.rank() > 0) return take_range(x, 0, range_of(key, x.shape()[0]));

  SmallVector<nb::handle, 8> items;
  if (PyTuple_Check(key.ptr()))
    for (nb::handle h : nb::borrow<nb::tuple>(key)) items.push_back(h);
  else items.push_back(key);
  SmallVector<Tensor, 8> arrays;  // of the items that are arrays
  int used = 0, ellipses = 0, array_count = 0, integers = 0;
  int runs = 0;  // of neighbouring integers and arrays
  bool in_run = false;
  for (nb::handle h : items) {
    arrays.push_back({});
    const bool basic = h.is_none() || h.ptr() == Py_Ellipsis || PySlice_Check(h.ptr());
    runs += !basic && !in_run;
    in_run = !basic;
    if (h.is_none()) continue;
    if (h.ptr() == Py_Ellipsis) ++ellipses;
    else if (is_index_array(h)) {
      arrays.back() = index_tensor(h);
      ++array_count;
      used += arrays.back().dtype() == DType::boolean ? arrays.back().rank() : 1;
    } else {
      ++used;
      integers += !basic;
    }
  }
  check<IndexError>(ellipses <= 1, "an index can have one ellipsis ('...')");
  check<IndexError>(array_count <= 1,
                    "an index can have one array; with several, use ops.gather or index one after the other");
  check<IndexError>(
      array_count == 0 || integers == 0 || runs <= 1,
      "an integer and an array that stand apart move axes in NumPy; index one after the other instead");
  check<IndexError>(used <= x.rank(), "too many indices: ", used, " for ", x);

  Tensor y = x;
  int axis = 0;
  Axes new_axes;  // before which axis of y; they are put in last, so that the rest stays a view
  for (size_t k = 0; k < items.size(); ++k) {
    const nb::handle h = items[k];
    if (h.is_none()) {
      new_axes.push_back(axis);
    } else if (h.ptr() == Py_Ellipsis) {
      axis += x.rank() - used;
    } else if (arrays[k].defined()) {
      const Tensor& a = arrays[k];
      const bool mask = a.dtype() == DType::boolean;
      y = mask ? take_mask(y, axis, a) : take_array(y, axis, a);
      axis += mask ? 1 : a.rank();
    } else if (PySlice_Check(h.ptr())) {
      y = take_range(y, axis, range_of(h, y.shape()[axis]));
      ++axis;
    } else {
      check<DTypeError>(
          PyIndex_Check(h.ptr()) || is_symbolic(h),
          "an index must be an integer, a slice, None, '...', or an array of integers or bool, got ",
          nb::cast<std::string>(nb::type_name(h.type())));
      y = take_one(y, axis, h);
    }
  }
  if (new_axes.empty()) return y.impl() == x.impl() ? reshape(x, x.shape()) : y;
  Shape shape;
  size_t next = 0;
  for (int a = 0; a <= y.rank(); ++a) {
    for (; next < new_axes.size() && new_axes[next] == a; ++next) shape.push_back(1);
    if (a < y.rank()) shape.push_back(y.shape()[a]);
  }
  return reshape(y, shape);
}

// The rows of the first axis, as one split: its gradient is one concat.
nb::object rows(const Tensor& x) {
  check<DTypeError>(x.rank() > 0, "iteration over a tensor without axes");
  nb::list result;
  Dims ones;
  for (int64_t i = 0, n = x.shape()[0].value(); i < n; ++i) ones.push_back(1);
  if (!ones.empty())
    for (const Tensor& row : split(x, ones, 0)) result.append(nb::cast(drop_axis(row, 0)));
  return nb::iter(result);
}

}  // namespace

void bind_index(TensorClass& c) {
  c.def("__getitem__", &get, nb::arg("key").none(),
        nb::sig("def __getitem__(self, key: object, /) -> Tensor"),
        "A part of the tensor, indexed as in NumPy. Slices of the first axis share its memory.")
      .def(
          "__setitem__",
          [](const Tensor&, nb::handle, nb::handle) {
            fail<DTypeError>(
                "tensors are not changed in place; use ops.where, ops.concat or ops.scatter_add, or write to "
                ".numpy()");
          },
          nb::arg("key").none(), nb::arg("value").none())
      .def("__iter__", &rows)
      .def("__len__", [](const Tensor& t) {
        check<DTypeError>(t.rank() > 0, "len() of a tensor without axes");
        return t.shape()[0].value();
      });
}

}  // namespace plmcore::bindings
