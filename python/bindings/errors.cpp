// C++ exceptions as Python ones. Each is a subclass of the built-in that a caller would expect.
#include <cstring>
#include <new>
#include <stdexcept>

#include "bindings/bindings.h"

namespace plmcore::bindings {

namespace {

// A message may quote a file, which may hold any bytes.
nb::object text_of(const char* what) {
  return nb::steal(PyUnicode_DecodeUTF8(what, static_cast<Py_ssize_t>(std::strlen(what)), "replace"));
}

template <class E>
void bind_error(nb::module_& m, const char* name, PyObject* base, const char* doc) {
  const std::string full = nb::cast<std::string>(m.attr("__name__")) + "." + name;
  const nb::object type = nb::steal(PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr));
  m.attr(name) = type;  // the module keeps it
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void* type) {
        try {
          std::rethrow_exception(p);
        } catch (const E& e) { PyErr_SetObject(static_cast<PyObject*>(type), text_of(e.what()).ptr()); }
      },
      type.ptr());
}

}  // namespace

void bind_errors(nb::module_& m) {
  bind_error<ShapeError>(m, "ShapeError", PyExc_ValueError, "Shapes that do not fit an op.");
  bind_error<ValueError>(
      m, "ArgumentError", PyExc_ValueError,
      "A value that a function does not take. The message names the value and says what to do.");
  bind_error<IndexError>(m, "IndexRangeError", PyExc_IndexError, "An index outside of its range.");
  bind_error<DTypeError>(m, "DTypeError", PyExc_TypeError, "A dtype that an op does not take.");
  bind_error<DeviceError>(m, "DeviceError", PyExc_RuntimeError,
                          "A device that is missing, cannot be used, or reports a failure.");
  bind_error<GraphError>(m, "GraphError", PyExc_RuntimeError,
                         "A gradient that cannot be computed from what was recorded.");
  bind_error<TraceError>(m, "TraceError", PyExc_RuntimeError,
                         "Code that cannot be traced, for instance a branch on a symbolic size.");
  bind_error<FormatError>(m, "FormatError", PyExc_ValueError,
                          "A file that is damaged or of another format. The message names the place.");
  bind_error<MemoryError>(m, "OutOfMemoryError", PyExc_MemoryError,
                          "A request for more memory than the machine or the cap allows.");
  bind_error<BusyError>(m, "BusyError", PyExc_RuntimeError, "A session that another thread is using.");
  const nb::tuple both = nb::make_tuple(m.attr("ArgumentError"), nb::handle(PyExc_TypeError));
  m.attr("KindError") = nb::steal(PyErr_NewExceptionWithDoc(
      "plmcore._core.KindError",
      "An argument of a wrong kind. The message names the function, the argument and both kinds.", both.ptr(),
      nullptr));
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void* type) {
        try {
          std::rethrow_exception(p);
        } catch (const std::bad_alloc&) {
          PyErr_SetString(static_cast<PyObject*>(type), "there is not enough memory");
        } catch (const std::length_error&) {
          PyErr_SetString(static_cast<PyObject*>(type), "a list would be longer than memory allows");
        }
      },
      m.attr("OutOfMemoryError").ptr());
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const nb::cast_error&) {  // kinds.cpp says which argument it was
      PyErr_SetString(PyExc_TypeError, "incompatible function arguments");
    } catch (
        const FileError& e) {  // OSError makes itself FileNotFoundError, PermissionError, ... by its number
      PyErr_SetObject(PyExc_OSError, nb::make_tuple(e.code, text_of(e.what())).ptr());
    }
  });
}

}  // namespace plmcore::bindings
