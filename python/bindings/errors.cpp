// C++ exceptions as Python ones. Each is a subclass of the built-in that a caller would expect.
#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_errors(nb::module_& m) {
  nb::exception<ShapeError>(m, "ShapeError", PyExc_ValueError);
  nb::exception<ValueError>(m, "ArgumentError", PyExc_ValueError);
  nb::exception<IndexError>(m, "IndexRangeError", PyExc_IndexError);
  nb::exception<DTypeError>(m, "DTypeError", PyExc_TypeError);
  nb::exception<DeviceError>(m, "DeviceError", PyExc_RuntimeError);
  nb::exception<GraphError>(m, "GraphError", PyExc_RuntimeError);
  nb::exception<TraceError>(m, "TraceError", PyExc_RuntimeError);
  nb::exception<FormatError>(m, "FormatError", PyExc_ValueError);
  nb::exception<MemoryError>(m, "OutOfMemoryError", PyExc_MemoryError);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const FileError& e) {  // OSError makes itself FileNotFoundError, PermissionError, ... by its number
      PyErr_SetObject(PyExc_OSError, nb::make_tuple(e.code, e.what()).ptr());
    }
  });
}

}  // namespace plmcore::bindings
