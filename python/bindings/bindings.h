// What the binding files share: conversions of tensors, shapes and dtypes. No logic of ops lives here.
#pragma once

#include <unistd.h>

#include <exception>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "plmcore/ops.h"
#include "plmcore/tensor.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace plmcore::bindings {

// One function per file of this folder, called by module.cpp.
void bind_errors(nb::module_& m);
void bind_dim(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_autograd(nb::module_& m);
void bind_session(nb::module_& m);
void bind_program(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_safetensors(nb::module_& m);
void bind_generate(nb::module_& m);
void bind_text(nb::module_& m);
void bind_vectors(nb::module_& m);
void bind_optim(nb::module_& m);         // whole groups of parameters, in optimisers.cpp
void bind_kinds(nb::module_& m);         // after all others: what their functions say of wrong arguments
// The ops by family, as in plmcore/ops.h.
void bind_making(nb::module_& m);
void bind_arithmetic(nb::module_& m);
void bind_elementwise(nb::module_& m);
void bind_reductions(nb::module_& m);
void bind_products(nb::module_& m);
void bind_shape(nb::module_& m);
void bind_embedding(nb::module_& m);
void bind_normalisation(nb::module_& m);
void bind_dropout(nb::module_& m);
void bind_attention(nb::module_& m);
void bind_recurrent(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_generation(nb::module_& m);
void bind_optimisers(nb::module_& m);

Dim to_dim(nb::handle h);                    // an int or a Dim
bool is_symbolic(nb::handle h);              // a Dim without a number
Shape to_shape(nb::handle h);                // an int, a Dim, or a sequence of them
nb::object from_dim(Dim d);
nb::tuple from_shape(const Shape& s);
Dims to_dims(nb::handle h);                  // as to_shape, of any length
Axes to_axes(nb::handle h);                  // an int or a sequence of them; none: empty
DType to_dtype(nb::handle h);                // a name, a NumPy dtype or type
Device& to_device(nb::handle h);             // a name; none: the CPU
// Where a new tensor is made: on a device by its name, or where the tensor `like` is.
Device& to_place(nb::handle device, const Tensor& like);
Tensor to_tensor(nb::handle h);              // a Tensor, or what NumPy makes an array of
Tensors to_tensors(nb::handle h);            // a sequence; None becomes an undefined tensor
nb::object from_tensor(const Tensor& t);     // None for an undefined tensor
nb::tuple from_tensors(const Tensors& t);

// An argument that may be None: undefined then. Converts to const Tensor&.
struct Optional {
  Tensor tensor;
  operator const Tensor&() const { return tensor; }
};

// The name of a file as the system spells it, whatever letters the locale knows.
struct FilePath {
  std::string name;
  operator const std::string&() const { return name; }
};

// What becomes a Tensor where one is expected: a NumPy array or scalar, a list.
struct ArrayLike {};

// The interpreter shuts down, and this is not the thread that does it: that is the main one, which may still
// run ops.
inline bool exiting() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() && gettid() != getpid();
#else
  return _Py_IsFinalizing() && gettid() != getpid();
#endif
}

// Takes the GIL by `take`. The interpreter ends a daemon thread that asks for it during shutdown by
// pthread_exit, which would unwind C++ frames and end the process with an abort: such a thread waits here for
// the exit instead, also when the shutdown began while it was waiting for the GIL.
template <class F>
auto take_gil(F take) {
  while (exiting()) pause();
  try {
    return take();
  } catch (...) {
    for (;;) pause();
  }
}

// Gives up the GIL for its lifetime.
class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  // Around work on a small tensor it stays: the release would cost more than the work.
  explicit ReleaseGil(const Tensor& t) : state_(is_large(t) ? PyEval_SaveThread() : nullptr) {}
  ~ReleaseGil() {
    if (state_) take_gil([this] { PyEval_RestoreThread(state_); });
  }
  ReleaseGil(const ReleaseGil&) = delete;

 private:
  static bool is_large(const Tensor& t) {
    int64_t n = 1;
    for (Dim d : t.shape()) {
      if (!d.known()) return false;  // a traced tensor: nothing is computed
      n *= d.rep();
      if (n > 4096) return true;
    }
    return false;
  }
  PyThreadState* state_;
};

// Holds the GIL for its lifetime, from any thread.
class HoldGil {
 public:
  HoldGil() : state_(take_gil(PyGILState_Ensure)) {}
  ~HoldGil() { PyGILState_Release(state_); }
  HoldGil(const HoldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Runs f with the GIL from any thread, to give up what Python owns. At exit nothing needs to be given up any
// more.
template <class F>
void with_gil_unless_gone(F f) {
  if (!Py_IsInitialized() || (exiting() && !PyGILState_Check())) return;
  const HoldGil gil;
  f();
}

// Binds f with the GIL released while it runs. Its arguments are converted before.
using NoGil = nb::call_guard<ReleaseGil>;

}  // namespace plmcore::bindings

namespace nanobind::detail {
template <>
struct type_caster<plmcore::bindings::ArrayLike> {
  NB_TYPE_CASTER(plmcore::bindings::ArrayLike, const_name("ArrayLike"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return PyList_Check(src.ptr()) || PyObject_HasAttrString(src.ptr(), "__array_interface__");
  }
};
template <>
struct type_caster<plmcore::bindings::FilePath> {
  NB_TYPE_CASTER(plmcore::bindings::FilePath, const_name("str"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    PyObject* bytes = nullptr;
    if (!PyUnicode_FSConverter(src.ptr(), &bytes)) {
      PyErr_Clear();
      return false;
    }
    value.name.assign(PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes)));
    Py_DECREF(bytes);
    return true;
  }
};
template <>
struct type_caster<plmcore::bindings::Optional> {
  NB_TYPE_CASTER(plmcore::bindings::Optional, const_name("Tensor | None"))
  bool from_python(handle src, uint8_t flags, cleanup_list* cleanup) noexcept {
    if (src.is_none()) return true;
    make_caster<plmcore::Tensor> inner;
    if (!inner.from_python(src, flags, cleanup)) return false;
    value.tensor = inner.operator cast_t<const plmcore::Tensor&>();
    return true;
  }
};
template <>
struct type_caster<plmcore::Tensors> {
  NB_TYPE_CASTER(plmcore::Tensors, const_name("Sequence[Tensor | None]"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    try {
      value = plmcore::bindings::to_tensors(src);
      return true;
    } catch (...) {
      PyErr_Clear();
      return false;
    }
  }
  static handle from_cpp(const plmcore::Tensors& t, rv_policy, cleanup_list*) noexcept {
    return plmcore::bindings::from_tensors(t).release();
  }
};
template <>
struct type_caster<plmcore::Dim> {
  NB_TYPE_CASTER(plmcore::Dim, const_name("int | Dim"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    try {
      value = plmcore::bindings::to_dim(src);
      return true;
    } catch (...) {
      PyErr_Clear();
      return false;
    }
  }
  static handle from_cpp(plmcore::Dim d, rv_policy, cleanup_list*) noexcept {
    return plmcore::bindings::from_dim(d).release();
  }
};
// Of values that may be of the right kind and wrong all the same: a negative size, the name of no dtype. They
// fit the signature, and the typed error is thrown when the value is taken; otherwise nanobind would say that
// no signature fits, and not why.
template <class V>
struct late_caster {
  using Value = V;
  template <class T>
  using Cast = V;
  template <class T>
  static constexpr bool can_cast() {
    return true;
  }
  explicit operator V() {
    if (problem) std::rethrow_exception(problem);
    return std::move(value);
  }

 protected:
  bool take(V (*convert)(handle), handle src) noexcept {
    try {
      value = convert(src);
    } catch (const plmcore::Error&) { problem = std::current_exception(); } catch (...) {
      PyErr_Clear();
      return false;
    }
    return true;
  }

  V value{};
  std::exception_ptr problem;
};
template <>
struct type_caster<plmcore::Shape> : late_caster<plmcore::Shape> {
  static constexpr auto Name = const_name("Sequence[int | Dim]");
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return take(plmcore::bindings::to_shape, src);
  }
  static handle from_cpp(const plmcore::Shape& s, rv_policy, cleanup_list*) noexcept {
    return plmcore::bindings::from_shape(s).release();
  }
};
template <>
struct type_caster<plmcore::Dims> : late_caster<plmcore::Dims> {
  static constexpr auto Name = const_name("Sequence[int | Dim]");
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return take(plmcore::bindings::to_dims, src);
  }
};
template <>
struct type_caster<plmcore::DType> : late_caster<plmcore::DType> {
  static constexpr auto Name = const_name("DTypeLike");
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return take(plmcore::bindings::to_dtype, src);
  }
  static handle from_cpp(plmcore::DType t, rv_policy, cleanup_list*) noexcept {
    return nb::str(plmcore::name_of(t)).release();
  }
};
template <>
struct type_caster<plmcore::Axes> {
  NB_TYPE_CASTER(plmcore::Axes, const_name("int | Sequence[int] | None"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    try {
      value = plmcore::bindings::to_axes(src);
      return true;
    } catch (...) {
      PyErr_Clear();
      return false;
    }
  }
};
}  // namespace nanobind::detail
