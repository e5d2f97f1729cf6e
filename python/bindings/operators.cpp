// + - * / ** @ and comparisons of plm.Tensor with tensors, numbers, arrays and symbolic sizes on either side.
#include <cmath>
#include <optional>

#include "bindings/tensor.h"

namespace plmcore::bindings {

namespace {

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

// A Python number, or a NumPy scalar.
struct Number {
  double value = 0;
  bool whole = false;  // an int or a bool
  int64_t exact = 0;  // of a whole one
};
std::optional<Number> number_of(nb::handle h) {
  PyObject* p = h.ptr();
  if (PyFloat_Check(p)) return Number{PyFloat_AS_DOUBLE(p)};
  if (PyLong_Check(p)) {
    const int64_t n = PyLong_AsLongLong(p);
    if (n == -1 && PyErr_Occurred()) throw nb::python_error();
    return Number{static_cast<double>(n), true, n};
  }
  if (PyObject_TypeCheck(p, reinterpret_cast<PyTypeObject*>(numpy().generic.ptr())))
    return number_of(h.attr("item")());
  return {};
}

constexpr double kExact = 9007199254740992.0;  // 2^53: doubles hold all whole numbers below

// The number as a tensor that meets `like`: of its dtype where that holds it, else float32.
Tensor as_tensor(const Number& n, const Tensor& like) {
  if (n.whole && like.dtype() == DType::int64 && std::abs(n.value) >= kExact) {
    Tensor t = Tensor::empty({}, DType::int64);
    *t.as<int64_t>() = n.exact;
    return t.to(like.device());
  }
  const bool fits = is_float(like.dtype()) || (n.whole && like.dtype() != DType::boolean);
  const DType own = n.whole ? DType::int64 : DType::float32;
  return full({}, n.value, fits ? like.dtype() : own, &like.device());
}

Tensor to_float(const Tensor& t) { return is_float(t.dtype()) ? t : cast(t, DType::float32); }
// In a dtype that can hold x op number: bool counts, integers become float32 where the number is not whole.
Tensor for_number(const Tensor& x, const Number& n) {
  if (is_float(x.dtype())) return x;
  if (!n.whole) return cast(x, DType::float32);
  return x.dtype() == DType::boolean ? cast(x, DType::int64) : x;
}
// affine takes doubles; int64 tensors with numbers beyond 2^53 go the exact way.
bool in_double(const Tensor& x, const Number& n) { return is_float(x.dtype()) || std::abs(n.value) < kExact; }

// Each operator: of two tensors, of a tensor and a number, of a number and a tensor.
struct Add {
  static Tensor call(const Tensor& a, const Tensor& b) { return add(a, b); }
  static Tensor call(const Tensor& x, const Number& n) {
    return in_double(x, n) ? affine(x, 1, n.value) : add(x, as_tensor(n, x));
  }
  static Tensor call(const Number& n, const Tensor& x) { return call(x, n); }
};
struct Sub {
  static Tensor call(const Tensor& a, const Tensor& b) { return sub(a, b); }
  static Tensor call(const Tensor& x, const Number& n) {
    return in_double(x, n) ? affine(x, 1, -n.value) : sub(x, as_tensor(n, x));
  }
  static Tensor call(const Number& n, const Tensor& x) {
    return in_double(x, n) ? affine(x, -1, n.value) : sub(as_tensor(n, x), x);
  }
};
struct Mul {
  static Tensor call(const Tensor& a, const Tensor& b) { return mul(a, b); }
  static Tensor call(const Tensor& x, const Number& n) {
    return in_double(x, n) ? affine(x, n.value, 0) : mul(x, as_tensor(n, x));
  }
  static Tensor call(const Number& n, const Tensor& x) { return call(x, n); }
};
struct Div {
  static Tensor call(const Tensor& a, const Tensor& b) { return div(to_float(a), to_float(b)); }
  static Tensor call(const Tensor& t, const Number& n) {
    const Tensor x = to_float(t);
    const double scale = 1 / n.value;  // a multiplication, unless the reciprocal leaves float's range
    return std::abs(scale) < 1e30 && std::abs(scale) > 1e-30 ? affine(x, scale, 0) : div(x, as_tensor(n, x));
  }
  static Tensor call(const Number& n, const Tensor& t) {
    const Tensor x = to_float(t);
    return div(as_tensor(n, x), x);
  }
};
struct Pow {
  static Tensor call(const Tensor& a, const Tensor& b) { return pow(to_float(a), to_float(b)); }
  static Tensor call(const Tensor& t, const Number& n) {
    if (n.value == 2 && t.dtype() != DType::boolean) return mul(t, t);
    const Tensor x = to_float(t);
    if (n.value == 0.5) return sqrt(x);
    if (n.value == -0.5) return rsqrt(x);
    return pow(x, as_tensor(n, x));
  }
  static Tensor call(const Number& n, const Tensor& t) {
    const Tensor x = to_float(t);
    return pow(as_tensor(n, x), x);
  }
};
template <Tensor (*F)(const Tensor&, const Tensor&)>
struct Compare {
  static Tensor call(const Tensor& a, const Tensor& b) { return F(a, b); }
  static Tensor call(const Tensor& x, const Number& n) { return F(x, as_tensor(n, x)); }
};
struct MatMul {
  static Tensor call(const Tensor& a, const Tensor& b) { return matmul(a, b); }
};

// An array, a list or a symbolic size as a tensor; undefined for what is none of them. An array takes the
// tensor's dtype where only the width or int against float differs: NumPy's float64 is a default more often
// than a wish.
Tensor other_tensor(nb::handle h, const Tensor& like) {
  if (is_array(h) || PyList_Check(h.ptr())) {
    Tensor t = copy_array(h, nb::none());
    if (t.dtype() != like.dtype() && is_float(like.dtype()))
      t = copy_array(h, nb::str(name_of(like.dtype())));
    return t.to(like.device());
  }
  if (is_symbolic(h)) {  // its number is known when the program runs
    const Dim d = to_dim(h);
    return reshape(arange(d, d + 1, is_float(like.dtype()) ? like.dtype() : DType::int64, &like.device()),
                   {});
  }
  return {};
}

template <class Op>
nb::object run(Tensor a, Tensor b) {
  promote(a, b);
  const Tensor& larger = a.rank() >= b.rank() ? a : b;
  const auto result = [&] {
    const ReleaseGil nogil(larger);
    return Op::call(a, b);
  }();
  return nb::cast(result);
}
template <class Op, class A, class B>
nb::object run_number(const A& a, const B& b, const Tensor& x) {
  const auto result = [&] {
    const ReleaseGil nogil(x);
    return Op::call(a, b);
  }();
  return nb::cast(result);
}

template <class Op>
nb::object left(const Tensor& a, nb::handle other) {
  if (nb::isinstance<Tensor>(other)) return run<Op>(a, nb::cast<const Tensor&>(other));
  if constexpr (requires(Number n) { Op::call(a, n); })
    if (const std::optional<Number> n = number_of(other)) {
      const Tensor x = for_number(a, *n);
      return run_number<Op>(x, *n, x);
    }
  const Tensor b = other_tensor(other, a);
  return b.defined() ? run<Op>(a, b) : not_implemented();
}
template <class Op>
nb::object right(const Tensor& b, nb::handle other) {  // other op b; `other` is no tensor
  if constexpr (requires(Number n) { Op::call(n, b); })
    if (const std::optional<Number> n = number_of(other)) {
      const Tensor x = for_number(b, *n);
      return run_number<Op>(*n, x, x);
    }
  const Tensor a = other_tensor(other, b);
  return a.defined() ? run<Op>(a, b) : not_implemented();
}

Tensor negate(const Tensor& t) { return affine(t, -1, 0); }

}  // namespace

void promote(Tensor& a, Tensor& b) {
  const DType ta = a.dtype(), tb = b.dtype();
  if (ta == tb) return;
  const bool fa = is_float(ta), fb = is_float(tb);
  if (fa && fb) return;  // the op says that they differ: a cast between widths should be seen
  const auto rank = [](DType t) {
    switch (t) {
      case DType::boolean: return 0;
      case DType::int32: return 2;
      case DType::int64: return 3;
      default: return 1;
    }
  };
  if (fa || (!fb && rank(ta) > rank(tb))) b = cast(b, ta);
  else if (fb || rank(tb) > rank(ta)) a = cast(a, tb);
}

void bind_operators(TensorClass& c) {
#define PLM_OPERATOR(name, reflected, Op)                                   \
  c.def("__" name "__", &left<Op>, nb::is_operator(),                       \
        nb::sig("def __" name "__(self, other: TensorLike, /) -> Tensor")); \
  c.def("__" reflected "__", &right<Op>, nb::is_operator(),                 \
        nb::sig("def __" reflected "__(self, other: TensorLike, /) -> Tensor"))
  PLM_OPERATOR("add", "radd", Add);
  PLM_OPERATOR("sub", "rsub", Sub);
  PLM_OPERATOR("mul", "rmul", Mul);
  PLM_OPERATOR("truediv", "rtruediv", Div);
  PLM_OPERATOR("pow", "rpow", Pow);
  PLM_OPERATOR("matmul", "rmatmul", MatMul);
  PLM_OPERATOR("and", "rand", Compare<logical_and>);
  PLM_OPERATOR("or", "ror", Compare<logical_or>);
#undef PLM_OPERATOR
#define PLM_COMPARISON(name, f)                               \
  c.def("__" name "__", &left<Compare<f>>, nb::is_operator(), \
        nb::sig("def __" name "__(self, other: TensorLike, /) -> Tensor"))
  PLM_COMPARISON("lt", less);
  PLM_COMPARISON("le", less_equal);
  PLM_COMPARISON("gt", greater);
  PLM_COMPARISON("ge", greater_equal);
#undef PLM_COMPARISON
  c.def("__eq__", &left<Compare<equal>>, nb::is_operator(), nb::arg().none(),
        nb::sig("def __eq__(self, other: object, /) -> Tensor"))
      .def("__ne__", &left<Compare<not_equal>>, nb::is_operator(), nb::arg().none(),
           nb::sig("def __ne__(self, other: object, /) -> Tensor"))
      .def("__hash__",
           [](nb::handle self) {
             return static_cast<Py_ssize_t>(reinterpret_cast<uintptr_t>(self.ptr()) >> 4);
           })
      .def("__neg__", &negate)
      .def("__pos__", [](const Tensor& t) { return t; })
      .def("__abs__", [](const Tensor& t) { return abs(t); })
      .def("__invert__", &logical_not);
}

}  // namespace plmcore::bindings
