// DLPack both ways, versioned (1.x, with a read-only flag) and not: other libraries see a tensor's memory,
// and tensors see theirs.
#include <cstring>

#include "bindings/tensor.h"
#include "core/device.h"

namespace plmcore::bindings {

namespace {

// The structures of dlpack.h, version 1.
struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
constexpr uint64_t kReadOnly = 1;
constexpr int32_t kCpu = 1, kPinned = 3;  // memory that a GPU can see as well
enum Code : uint8_t { kInt, kUInt, kFloat, kBfloat = 4, kBool = 6 };

DLDataType to_dlpack(DType t) {
  const auto bits = static_cast<uint8_t>(8 * size_of(t));
  switch (t) {
    case DType::bfloat16: return {kBfloat, bits, 1};
    case DType::boolean: return {kBool, bits, 1};
    case DType::uint8: return {kUInt, bits, 1};
    default: return {static_cast<uint8_t>(is_float(t) ? kFloat : kInt), bits, 1};
  }
}
DType from_dlpack_type(DLDataType t) {
  for (int i = 0; i < kDTypes; ++i) {
    const DLDataType d = to_dlpack(static_cast<DType>(i));
    if (d.code == t.code && d.bits == t.bits && t.lanes == 1) return static_cast<DType>(i);
  }
  fail<DTypeError>("from_dlpack: no dtype for code ", static_cast<int>(t.code), ", ",
                   static_cast<int>(t.bits), " bits, ", static_cast<int>(t.lanes), " lanes");
}

// ---- out ----

template <class Managed>
struct Export {  // lives until the other side calls the deleter
  Managed managed;
  Tensor tensor;
  int64_t shape[Shape::kMaxRank], strides[Shape::kMaxRank];

  explicit Export(const Tensor& t) : tensor(t.detach()) { tensor.impl()->storage->lend(); }
  ~Export() { tensor.impl()->storage->take_back(); }
};

DLDevice place_of(const Tensor& t) {
  const Device::Place place = t.device().dlpack();
  return {place.type, place.index};
}

template <class Managed>
nb::object export_tensor(const Tensor& t, const char* name) {
  t.data();  // a traced tensor has none: says so
  auto* e = new Export<Managed>(t);
  int64_t run = 1;
  for (int i = t.rank() - 1; i >= 0; --i) {
    e->shape[i] = t.shape()[i].value();
    e->strides[i] = run;
    run *= e->shape[i];
  }
  e->managed = {};
  e->managed.tensor = {t.data(), place_of(t), t.rank(), to_dlpack(t.dtype()), e->shape, e->strides, 0};
  e->managed.context = e;
  e->managed.deleter = [](Managed* m) { delete static_cast<Export<Managed>*>(m->context); };
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    e->managed.major = 1;
    e->managed.flags = t.impl()->storage->read_only ? kReadOnly : 0;
  }
  PyObject* capsule = PyCapsule_New(&e->managed, name, [](PyObject* c) {
    // A capsule that was used has another name; its taker calls the deleter.
    for (const char* unused : {"dltensor", "dltensor_versioned"})
      if (PyCapsule_IsValid(c, unused)) {
        auto* m = static_cast<Managed*>(PyCapsule_GetPointer(c, unused));
        m->deleter(m);
      }
  });
  return nb::steal(capsule);
}

nb::object to_capsule(const Tensor& t, nb::handle, nb::handle max_version, nb::handle device,
                      nb::handle copied) {
  Tensor source = t;
  if (!device.is_none()) {
    const nb::tuple want = nb::borrow<nb::tuple>(device);
    const DLDevice here = place_of(t);
    if (nb::cast<int>(want[0]) == kCpu && here.type != kCpu) source = t.detach().to(cpu());
    else
      check<DeviceError>(nb::cast<int>(want[0]) == here.type && nb::cast<int>(want[1]) == here.id,
                         "__dlpack__: the tensor is on ", t.device().name(),
                         "; dl_device asks for another device");
  }
  if (!copied.is_none() && nb::cast<bool>(copied) && source.impl() == t.impl())
    source = plmcore::copy(t.detach());
  source.device().synchronize();  // whoever reads it may do so on any stream
  const bool versioned = !max_version.is_none() && nb::cast<int>(nb::borrow<nb::tuple>(max_version)[0]) >= 1;
  if (versioned) return export_tensor<DLManagedTensorVersioned>(source, "dltensor_versioned");
  if (source.impl()->storage->read_only)
    throw nb::buffer_error("__dlpack__: the tensor is read-only, which this version of DLPack cannot say");
  return export_tensor<DLManagedTensor>(source, "dltensor");
}

// ---- in ----

// Copies an array with strides, in elements, to contiguous memory.
void copy_strided(char* to, const char* from, const DLTensor& t, int axis, size_t bytes) {
  if (axis == t.ndim) {
    std::memcpy(to, from, bytes);
    return;
  }
  size_t step = bytes;
  for (int i = axis + 1; i < t.ndim; ++i) step *= static_cast<size_t>(t.shape[i]);
  for (int64_t i = 0; i < t.shape[axis]; ++i)
    copy_strided(to + static_cast<size_t>(i) * step, from + i * t.strides[axis] * static_cast<int64_t>(bytes),
                 t, axis + 1, bytes);
}

template <class Managed>
Tensor import_tensor(nb::handle capsule, const char* name, const char* used) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!m) throw nb::python_error();
  const DLTensor& d = m->tensor;
  const bool on_host = d.device.type == kCpu || d.device.type == kPinned;
  Device* device = on_host ? &cpu() : device_of_dlpack({d.device.type, d.device.id});
  check<DeviceError>(device, "from_dlpack: the array is on a device (type ", d.device.type, ", number ",
                     d.device.id, ") that cannot be used here; copy it to the cpu first");
  const DType dtype = from_dlpack_type(d.dtype);
  Shape shape;
  for (int i = 0; i < d.ndim; ++i) shape.push_back(d.shape[i]);
  bool compact = true;
  int64_t run = 1;
  for (int i = d.ndim - 1; i >= 0; --i) {
    compact = compact && (!d.strides || d.shape[i] == 1 || d.strides[i] == run);
    run *= d.shape[i];
  }
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  if (!compact && run > 0) {
    check<DeviceError>(on_host, "from_dlpack: an array on ", device->name(),
                       " must be contiguous; copy it first");
    Tensor t = Tensor::empty(shape, dtype);
    copy_strided(t.as<char>(), data, d, 0, size_of(dtype));
    return t;  // the capsule still owns its array
  }
  Tensor t = Tensor::borrow(
      shape, dtype, data, m,
      [](void* owner) {
        with_gil_unless_gone(
            [managed = static_cast<Managed*>(owner)] {  // the deleter may belong to Python objects
              if (managed->deleter) managed->deleter(managed);
            });
      },
      *device);
  device->synchronize();  // its maker may have written it on another stream
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>)
    t.impl()->storage->read_only = (m->flags & kReadOnly) != 0;
  t.impl()->storage->lend();  // for good: the memory is not ours
  PyCapsule_SetName(capsule.ptr(), used);
  return t;
}

Tensor from_dlpack(nb::handle source) {
  nb::object capsule;
  if (PyCapsule_CheckExact(source.ptr())) capsule = nb::borrow(source);
  else {
    check<DTypeError>(nb::hasattr(source, "__dlpack__"), "from_dlpack: the object has no __dlpack__ method");
    try {
      capsule = source.attr("__dlpack__")("max_version"_a = nb::make_tuple(1, 0));
    } catch (nb::python_error& e) {  // older producers do not know the argument
      if (!e.matches(PyExc_TypeError)) throw;
      capsule = source.attr("__dlpack__")();
    }
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned"))
    return import_tensor<DLManagedTensorVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned");
  check<ValueError>(PyCapsule_IsValid(capsule.ptr(), "dltensor"),
                    "from_dlpack: the capsule was used before, or is not of DLPack");
  return import_tensor<DLManagedTensor>(capsule, "dltensor", "used_dltensor");
}

}  // namespace

void bind_dlpack(nb::module_& m, TensorClass& c) {
  m.def("from_dlpack", &from_dlpack, "array"_a,
        "A tensor over the memory of an array of another library; one that is not contiguous is copied.");
  c.def("__dlpack__", &to_capsule, nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
        "dl_device"_a = nb::none(), "copy"_a = nb::none())
      .def("__dlpack_device__", [](const Tensor& t) {
        const DLDevice place = place_of(t);
        return nb::make_tuple(place.type, place.id);
      });
}

}  // namespace plmcore::bindings
