#include "bindings/bindings.h"

namespace plmcore::bindings {

namespace {
struct Symbolic {  // what Python calls a Dim; a size with a number is a plain int there
  Dim dim;
};
}  // namespace

bool is_symbolic(nb::handle h) { return nb::isinstance<Symbolic>(h); }

Dim to_dim(nb::handle h) {
  if (PyLong_Check(h.ptr())) {
    int overflow = 0;
    const long long n = PyLong_AsLongLongAndOverflow(h.ptr(), &overflow);
    if (overflow) fail<ShapeError>("a size must fit 64 bits, got ", nb::cast<std::string>(nb::str(h)));
    return Dim(n);
  }
  if (nb::isinstance<Symbolic>(h)) return nb::cast<Symbolic&>(h).dim;
  const nb::object index = nb::steal(PyNumber_Index(h.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  return to_dim(index);
}
Shape to_shape(nb::handle h) {
  Shape s;
  if (PyTuple_Check(h.ptr()) || PyList_Check(h.ptr())) {
    for (nb::handle d : h) s.push_back(to_dim(d));
  } else s.push_back(to_dim(h));
  return s;
}
Dims to_dims(nb::handle h) {
  Dims s;
  if (PyTuple_Check(h.ptr()) || PyList_Check(h.ptr())) {
    for (nb::handle d : h) s.push_back(to_dim(d));
  } else s.push_back(to_dim(h));
  return s;
}
Axes to_axes(nb::handle h) {
  Axes axes;
  if (h.is_none()) return axes;
  if (PyTuple_Check(h.ptr()) || PyList_Check(h.ptr())) {
    for (nb::handle a : h) axes.push_back(nb::cast<int>(a));
  } else axes.push_back(nb::cast<int>(h));
  return axes;
}
nb::object from_dim(Dim d) {
  if (d.known()) return nb::int_(d.rep());
  return nb::cast(Symbolic{d});
}
nb::tuple from_shape(const Shape& s) {
  nb::object t = nb::steal(PyTuple_New(s.rank()));
  for (int i = 0; i < s.rank(); ++i) PyTuple_SET_ITEM(t.ptr(), i, from_dim(s[i]).release().ptr());
  return nb::borrow<nb::tuple>(t);
}

void bind_dim(nb::module_& m) {
  nb::class_<Symbolic>(
      m, "Dim",
      "A size that has no number yet: a symbol of a trace (B, T), or an expression over symbols (P+T).")
      .def(
          "__init__", [](Symbolic* d, std::string_view text) { new (d) Symbolic{Dim::parse(text)}; },
          "text"_a)
      .def("__repr__", [](const Symbolic& d) { return d.dim.str(); })
      .def("__hash__", [](const Symbolic& d) { return d.dim.rep(); })
      .def(
          "__add__", [](const Symbolic& a, Dim b) { return a.dim + b; }, nb::is_operator())
      .def(
          "__radd__", [](const Symbolic& a, Dim b) { return b + a.dim; }, nb::is_operator())
      .def(
          "__sub__", [](const Symbolic& a, Dim b) { return a.dim - b; }, nb::is_operator())
      .def(
          "__rsub__", [](const Symbolic& a, Dim b) { return b - a.dim; }, nb::is_operator())
      .def(
          "__mul__", [](const Symbolic& a, Dim b) { return a.dim * b; }, nb::is_operator())
      .def(
          "__rmul__", [](const Symbolic& a, Dim b) { return b * a.dim; }, nb::is_operator())
      .def(
          "__floordiv__", [](const Symbolic& a, Dim b) { return divide(a.dim, b); }, nb::is_operator())
      .def(
          "__eq__", [](const Symbolic& a, Dim b) { return a.dim == b; }, nb::is_operator())
      .def(
          "__ne__", [](const Symbolic& a, Dim b) { return !(a.dim == b); }, nb::is_operator())
      .def(
          "__lt__", [](const Symbolic& a, Dim b) { return a.dim.value() < b.value(); }, nb::is_operator())
      .def(
          "__le__", [](const Symbolic& a, Dim b) { return a.dim.value() <= b.value(); }, nb::is_operator())
      .def(
          "__gt__", [](const Symbolic& a, Dim b) { return a.dim.value() > b.value(); }, nb::is_operator())
      .def(
          "__ge__", [](const Symbolic& a, Dim b) { return a.dim.value() >= b.value(); }, nb::is_operator())
      .def("__index__", [](const Symbolic& d) { return d.dim.value(); })
      .def("__bool__", [](const Symbolic& d) { return d.dim.value() != 0; });
}

}  // namespace plmcore::bindings
