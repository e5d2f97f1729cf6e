// NumPy's arrays, which the callers make, as memory: the buffer protocol tells where they lie.
#pragma once

#include <cstring>
#include <type_traits>

#include "bindings/bindings.h"
#include "plmcore/error.h"

namespace plmcore::bindings {

// An array of `T` with `rank` axes, contiguous.
template <class T>
class View {
 public:
  View(nb::handle array, const char* name, int rank) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (std::is_const_v<T> ? 0 : PyBUF_WRITABLE);
    if (PyObject_GetBuffer(array.ptr(), &view_, flags) != 0) throw nb::python_error();
    const char* format = view_.format ? view_.format : "B";
    if (std::strchr("@=<", *format)) ++format;
    if (view_.ndim != rank || view_.itemsize != sizeof(T) || std::strchr(kind(), *format) == nullptr) {
      PyBuffer_Release(&view_);
      fail<DTypeError>(name, " must have ", rank, " axes and items of ", sizeof(T), " bytes of the kind ",
                       kind());
    }
  }
  View(const View&) = delete;
  ~View() { PyBuffer_Release(&view_); }

  T* data() const { return static_cast<T*>(view_.buf); }
  int64_t size(int axis) const { return view_.shape[axis]; }
  // Fails unless the sizes are these.
  const View& of(const char* name, std::initializer_list<int64_t> sizes) const {
    int axis = 0;
    for (int64_t n : sizes) {
      check(size(axis) == n, name, " must have ", n, " along axis ", axis, ", got ", size(axis));
      ++axis;
    }
    return *this;
  }

 private:
  static const char* kind() {
    using Plain = std::remove_const_t<T>;
    if (std::is_same_v<Plain, bool>) return "?";
    if (std::is_floating_point_v<Plain>) return "fd";
    return std::is_signed_v<Plain> ? "ilq" : "HILQ";
  }
  Py_buffer view_{};
};

using Ints = View<const int64_t>;

}  // namespace plmcore::bindings
