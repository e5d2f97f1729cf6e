// Calls whose arguments fit no signature: a KindError that names the argument, in place of nanobind's list of
// signatures.
//
// Every bound function is called through a pointer that lies in it (CPython's vectorcall protocol). Here the
// pointers are replaced by ones that call nanobind's and look at the error, if there is one: one more jump on
// the way in, and nothing else, for calls that are right.
#include <array>
#include <cstring>
#include <utility>

#include "bindings/bindings.h"

namespace plmcore::bindings {

namespace {

// nanobind calls functions in a few ways, by the form of their signature.
constexpr size_t kWays = 8;
std::array<vectorcallfunc, kWays> ways{};

PyObject *kind_error = nullptr, *argument_error = nullptr;

// The arguments by place; nanobind keeps flags of its own in the upper bits.
size_t count(size_t nargsf) { return nargsf & 0xffffffff; }

// "layer_norm: gamma must be a tensor, got a text", or null with an error of its own.
nb::object sentence(PyObject* self, PyObject* const* args, size_t n, PyObject* names, nb::handle said) {
  const nb::object positional = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(n))), named = nb::dict();
  for (size_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(positional.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
  const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < keywords; ++i)
    if (PyDict_SetItem(named.ptr(), PyTuple_GET_ITEM(names, i), args[n + static_cast<size_t>(i)]) != 0)
      return {};
  const nb::object module = nb::steal(PyImport_ImportModule("plmcore.runtime.kinds"));
  if (!module.is_valid()) return {};
  return nb::steal(
      PyObject_CallMethod(module.ptr(), "misfit", "OOOO", self, positional.ptr(), named.ptr(), said.ptr()));
}

// The plain TypeErrors, AttributeErrors and ValueErrors of nanobind, NumPy and Python's C functions become
// ours. An error with a traceback is of a Python function that was called back: it stays.
void explain(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const bool kind = type == PyExc_TypeError || type == PyExc_AttributeError;
  const bool other = type == PyExc_ValueError;
  if (trace || !value || !(kind || other)) {
    PyErr_Restore(type, value, trace);
    return;
  }
  const nb::object said = nb::steal(PyObject_Str(value));
  const nb::object better = said.is_valid() ? sentence(self, args, count(nargsf), names, said) : nb::object();
  if (!better.is_valid() && !PyErr_ExceptionMatches(PyExc_Exception)) {  // Ctrl-C
    Py_DECREF(type);
    Py_DECREF(value);
    return;
  }
  PyErr_Clear();
  if (better.is_valid()) PyErr_SetObject(kind ? kind_error : argument_error, better.ptr());
  else PyErr_SetObject(kind ? kind_error : argument_error, value);
  Py_DECREF(type);
  Py_DECREF(value);
}

template <size_t way>
PyObject* guarded(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  PyObject* result = ways[way](self, args, nargsf, names);
  if (!result) [[unlikely]]
    explain(self, args, nargsf, names);
  return result;
}

template <size_t... way>
vectorcallfunc guarded_way(size_t which, std::index_sequence<way...>) {
  static constexpr vectorcallfunc all[] = {&guarded<way>...};
  return all[which];
}

void guard_function(nb::handle f) {
  if (!PyVectorcall_Function(f.ptr())) return;
  auto* slot = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(f.ptr()) +
                                                 Py_TYPE(f.ptr())->tp_vectorcall_offset);
  for (size_t k = 0; k < kWays; ++k) {
    if (*slot == guarded_way(k, std::make_index_sequence<kWays>())) return;  // it has two names
    if (ways[k] && ways[k] != *slot) continue;
    ways[k] = *slot;
    *slot = guarded_way(k, std::make_index_sequence<kWays>());
    return;
  }
}

bool is_bound_function(nb::handle h) {
  const char* name = Py_TYPE(h.ptr())->tp_name;
  return std::strstr(name, "nb_func") || std::strstr(name, "nb_method");
}

void guard_members(nb::handle of) {
  for (nb::handle member : of.attr("__dict__").attr("values")()) {
    if (is_bound_function(member)) {
      guard_function(member);
    } else if (Py_TYPE(member.ptr()) == &PyProperty_Type) {
      for (const char* part : {"fget", "fset"})
        if (const nb::object f = member.attr(part); is_bound_function(f)) guard_function(f);
    } else if (PyModule_Check(member.ptr()) || nb::type_check(member)) {
      guard_members(member);
    }
  }
}

}  // namespace

void bind_kinds(nb::module_& m) {
  kind_error = m.attr("KindError").ptr();  // the module keeps them
  argument_error = m.attr("ArgumentError").ptr();
  guard_members(m);
}

}  // namespace plmcore::bindings
