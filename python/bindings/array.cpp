// NumPy arrays in and out. The buffer protocol tells address, sizes and type without looking up attributes.
#include <nanobind/ndarray.h>

#include <cstring>
#include <optional>

#include "bindings/tensor.h"
#include "core/device.h"

namespace plmcore::bindings {

const Numpy& numpy() {
  static const Numpy* found = [] {  // never freed: tensors may outlive the interpreter's modules
    nb::module_ np = nb::module_::import_("numpy");
    return new Numpy{np.attr("ndarray"),           np.attr("generic"), np.attr("asarray"),
                     np.attr("ascontiguousarray"), np.attr("dtype"),   np.attr("array2string")};
  }();
  return *found;
}

namespace {

nb::handle bfloat16() {  // not part of NumPy, and imported only when such a tensor meets NumPy
  static nb::object* type = nullptr;
  if (!type) type = new nb::object(nb::module_::import_("ml_dtypes").attr("bfloat16"));
  return *type;
}

bool is_instance(nb::handle h, nb::handle type) {
  return PyObject_TypeCheck(h.ptr(), reinterpret_cast<PyTypeObject*>(type.ptr())) != 0;
}

std::optional<DType> dtype_of_format(const char* f, Py_ssize_t bytes) {
  if (!f) return {};
  if (*f == '@' || *f == '=' || *f == '<') ++f;
  if (f[0] == 0 || f[1] != 0) return {};
  switch (f[0]) {
    case 'd': return DType::float64;
    case 'f': return DType::float32;
    case 'e': return DType::float16;
    case '?': return DType::boolean;
    case 'b': return DType::int8;
    case 'B': return DType::uint8;
    case 'i':
    case 'l':
    case 'q':
      if (bytes == 8) return DType::int64;
      if (bytes == 4) return DType::int32;
  }
  return {};
}

// A C-contiguous array as the buffer protocol shows it.
struct Buffer {
  Py_buffer view{};
  DType dtype{};
  Shape shape;
  bool held = false;

  Buffer() = default;
  Buffer(const Buffer&) = delete;
  ~Buffer() {
    if (held) PyBuffer_Release(&view);
  }

  // False where the array cannot be seen like this: strides, another byte order, a type of no buffer format
  // (bfloat16).
  bool open(nb::handle array) {
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return false;
    }
    held = true;
    const std::optional<DType> t = dtype_of_format(view.format, view.itemsize);
    if (!t) return false;
    dtype = *t;
    for (int i = 0; i < view.ndim; ++i) shape.push_back(static_cast<int64_t>(view.shape[i]));
    return true;
  }
};

Tensor copy_of(const void* data, const Shape& shape, DType dtype) {
  Tensor t = Tensor::empty(shape, dtype);
  const ReleaseGil nogil(t);
  std::memcpy(t.data(), data, t.bytes());
  return t;
}

template <class T>
Tensor single(T value, DType dtype) {
  Tensor t = Tensor::empty({}, dtype);
  *t.as<T>() = value;
  return t;
}

std::string dtype_name(nb::handle array) { return nb::cast<std::string>(array.attr("dtype").attr("name")); }

// The array in the given type, C-contiguous, as one that shows its memory: bfloat16 under the name of uint16.
nb::object plain_array(nb::object a, DType want) {
  nb::object shape = a.attr("shape");
  nb::object target = want == DType::bfloat16 ? nb::borrow(bfloat16()) : nb::object(nb::str(name_of(want)));
  a = numpy().ascontiguousarray(a.attr("astype")(target, "copy"_a = false)).attr("reshape")(shape);
  return want == DType::bfloat16 ? nb::object(a.attr("view")("uint16")) : a;
}

void* address(nb::handle array) {
  return reinterpret_cast<void*>(nb::cast<uintptr_t>(array.attr("__array_interface__")["data"][0]));
}

Tensor from_numpy(nb::handle h) {
  check<DTypeError>(is_instance(h, numpy().ndarray), "from_numpy: needs a NumPy array, got ",
                    nb::cast<std::string>(nb::type_name(h.type())),
                    "; plm.Tensor(data) copies what is not one");
  const DType dtype = to_dtype(h.attr("dtype"));
  const nb::object flags = h.attr("flags");
  check<ValueError>(nb::cast<bool>(flags["C_CONTIGUOUS"]) && nb::cast<bool>(flags["ALIGNED"]) &&
                        nb::cast<bool>(h.attr("dtype").attr("isnative")),
                    "from_numpy: the array must be C-contiguous, aligned and in native byte order to share "
                    "its memory; plm.Tensor(array) copies it");
  const Shape shape = to_shape(h.attr("shape"));
  void* data = address(h);
  h.inc_ref();
  Tensor t = Tensor::borrow(shape, dtype, data, h.ptr(), [](void* owner) {
    with_gil_unless_gone([owner] { Py_DECREF(static_cast<PyObject*>(owner)); });
  });
  t.impl()->storage->read_only = !nb::cast<bool>(flags["WRITEABLE"]);
  t.impl()->storage->lend();  // for good: the array is not ours
  return t;
}

}  // namespace

bool is_array(nb::handle h) { return is_instance(h, numpy().ndarray) || is_instance(h, numpy().generic); }

Tensor copy_array(nb::handle h, nb::handle dtype) {
  PyObject* p = h.ptr();
  if (dtype.is_none()) {
    if (PyBool_Check(p)) return single<uint8_t>(p == Py_True, DType::boolean);
    if (PyFloat_CheckExact(p)) return single<float>(static_cast<float>(PyFloat_AS_DOUBLE(p)), DType::float32);
  }
  const bool array = is_array(h);
  Buffer b;
  if (array && b.open(h) && (dtype.is_none() || to_dtype(dtype) == b.dtype))
    return copy_of(b.view.buf, b.shape, b.dtype);

  nb::object a = array && is_instance(h, numpy().ndarray) ? nb::borrow(h) : nb::object(numpy().asarray(h));
  std::string name = dtype.is_none() ? dtype_name(a) : name_of(to_dtype(dtype));
  if (dtype.is_none() && !array && name == "float64") name = "float32";  // Python's numbers
  const DType want = dtype_from_name(name);
  a = plain_array(a, want);
  return copy_of(address(a), to_shape(a.attr("shape")), want);
}

nb::object to_numpy(const Tensor& t) {
  check<DTypeError>(!t.is_row_sparse(),
                    "numpy(): a row-sparse gradient has no array; use to_dense(), or .rows and .values");
  if (!t.device().is_cpu()) return to_numpy(t.detach().to(cpu()));
  void* data = t.data();  // a traced tensor has none: says so
  SmallVector<size_t, 8> shape;
  for (Dim d : t.shape()) shape.push_back(static_cast<size_t>(d.value()));
  const auto type = [&]() -> nb::dlpack::dtype {
    switch (t.dtype()) {
      case DType::float64: return nb::dtype<double>();
      case DType::float32: return nb::dtype<float>();
      case DType::float16: return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
      case DType::bfloat16: return nb::dtype<uint16_t>();
      case DType::int64: return nb::dtype<int64_t>();
      case DType::int32: return nb::dtype<int32_t>();
      case DType::int8: return nb::dtype<int8_t>();
      case DType::uint8: return nb::dtype<uint8_t>();
      case DType::boolean: return nb::dtype<bool>();
    }
    return nb::dtype<float>();
  }();
  // The array holds the memory, not the tensor: that would keep the whole graph behind it.
  Storage* storage = t.impl()->storage.get();
  storage->retain();
  storage->lend();
  nb::capsule owner(storage, [](void* p) noexcept {
    static_cast<Storage*>(p)->take_back();
    static_cast<Storage*>(p)->release();
  });
  nb::object a = nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, type).cast();
  if (t.dtype() == DType::bfloat16) a = a.attr("view")(bfloat16());
  if (storage->read_only) a.attr("setflags")("write"_a = false);
  return a;
}

nb::object item(const Tensor& t) {
  if (is_float(t.dtype())) return nb::float_(t.item());
  check(t.shape().known() && t.numel() == 1, "item() needs exactly one element, got ", t);
  int64_t wide = 0;
  char raw[8];
  t.device().copy_out(raw, t.data(), size_of(t.dtype()));
  switch (t.dtype()) {
    case DType::int64: std::memcpy(&wide, raw, 8); break;
    case DType::int32: {
      int32_t v;
      std::memcpy(&v, raw, 4);
      wide = v;
      break;
    }
    case DType::int8: wide = static_cast<int8_t>(raw[0]); break;
    case DType::boolean: return nb::bool_(raw[0] != 0);
    default: wide = static_cast<uint8_t>(raw[0]);
  }
  return nb::int_(wide);
}

DType to_dtype(nb::handle h) {
  if (nb::isinstance<nb::str>(h)) return dtype_from_name(nb::cast<std::string_view>(h));
  try {
    return dtype_from_name(nb::cast<std::string>(numpy().dtype(h).attr("name")));
  } catch (const nb::python_error& e) {  // NumPy makes no dtype of it
    if (!e.matches(PyExc_TypeError)) throw;
  }
  return dtype_from_name(nb::cast<std::string>(nb::repr(h)));  // says what there is
}

void bind_array(nb::module_& m, TensorClass& c) {
  numpy();
  m.def("from_numpy", &from_numpy, "array"_a,
        "A tensor over the memory of a C-contiguous NumPy array, which it keeps alive. A read-only array "
        "gives a read-only tensor.");
  c.attr("__array_priority__") = 1000;
  c.attr("__array_ufunc__") = nb::none();  // array + tensor asks the tensor
  c.def("numpy", &to_numpy, "The values as a NumPy array; shares memory on the CPU.")
      .def(
          "__array__",
          [](const Tensor& t, nb::handle dtype, nb::handle copy) {
            nb::object a = to_numpy(t);
            if (!dtype.is_none()) a = a.attr("astype")(dtype, "copy"_a = false);
            return copy.is_none() || !nb::cast<bool>(copy) ? a : a.attr("copy")();
          },
          "dtype"_a = nb::none(), "copy"_a = nb::none())
      .def(
          "tolist", [](const Tensor& t) { return to_numpy(t).attr("tolist")(); },
          "The values as nested lists of Python numbers.")
      .def("item", &item, "The value of a tensor with one element, as a Python number.");
}

}  // namespace plmcore::bindings
