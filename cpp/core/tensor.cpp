#include "plmcore/tensor.h"

#include <atomic>
#include <bit>
#include <cstring>

#include "core/device.h"

namespace plmcore {

Storage::Storage(Device& d, size_t n) : device(d), data(d.allocator().allocate(n)), bytes(n) {}
Storage::Storage(Device& d, void* p, size_t n, void* o, void (*f)(void*))
    : device(d), data(p), bytes(n), owner(o), free_owner(f) {}
Storage::~Storage() {
  delete attachment.load();
  if (free_owner) free_owner(owner);
  else if (data) device.allocator().free(data, bytes);
}

void Storage::lend() {
  lent.fetch_add(1);
  device.forget_layouts(*this);
}

namespace {
void assign(TensorImpl*& slot, const Tensor& t) {
  TensorImpl* before = slot;
  slot = t.impl();
  if (slot) slot->retain();
  if (before) before->release();
}
TensorImpl* make(const Shape& shape, DType dtype, Device& device) {
  auto* impl = new TensorImpl;
  impl->spec = {shape, dtype};
  impl->device = &device;
  return impl;
}
}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype, Device& device) {
  const int64_t n = shape.numel().value();
  check<MemoryError>(n <= (int64_t{1} << 46), "a tensor of ", n, " elements ", shape,
                     " does not fit any memory");
  Tensor t(make(shape, dtype, device));
  t.impl()->storage = Ref<Storage>(new Storage(device, static_cast<size_t>(n) * size_of(dtype)));
  return t;
}
Tensor Tensor::zeros(const Shape& shape, DType dtype, Device& device) {
  Tensor t = empty(shape, dtype, device);
  device.fill_zero(t.data(), t.bytes());
  return t;
}
Tensor Tensor::borrow(const Shape& shape, DType dtype, void* data, void* owner, void (*free_owner)(void*),
                      Device& device) {
  static char nothing[64];  // an empty array may come without an address
  Tensor t(make(shape, dtype, device));
  const size_t bytes = static_cast<size_t>(shape.numel().value()) * size_of(dtype);
  t.impl()->storage = Ref<Storage>(new Storage(device, bytes ? data : nothing, bytes, owner, free_owner));
  return t;
}

Dim Tensor::size(int axis) const {
  const int r = rank();
  check<IndexError>(axis >= -r && axis < r, "axis ", axis, " is out of range for ", *this);
  return shape()[axis < 0 ? axis + r : axis];
}
void* Tensor::data() const {
  check<TraceError>(has_data(), "the tensor ", *this,
                    " has no values here: it is part of a running trace, or was not saved for backward");
  void* data = std::atomic_ref(impl_->storage->data).load(std::memory_order_acquire);
  if (!data) [[unlikely]]
    data = impl_->storage->device.lay_out(*impl_->storage);
  return static_cast<char*>(data) + impl_->offset;
}

const Tensor& Tensor::set_requires_grad(bool on) const {
  check<DTypeError>(!on || is_float(dtype()), "requires_grad needs a float dtype, got ", *this);
  check<GraphError>(
      is_leaf(), "requires_grad can only be set on a leaf, a tensor that no op has computed; use detach()");
  impl_->requires_grad = on;
  return *this;
}
Tensor Tensor::grad() const { return impl_->grad ? Tensor(impl_->grad) : Tensor(); }
void Tensor::set_grad(const Tensor& g) const {
  if (g.defined())
    check(g.shape().matches(shape()), "a gradient must have its tensor's shape ", shape(), ", got ",
          g.shape());
  assign(impl_->grad, g);
}
Tensor Tensor::detach() const {
  Tensor t(make(shape(), dtype(), device()));
  t.impl()->storage = impl_->storage;
  t.impl()->offset = impl_->offset;
  t.impl()->trace = impl_->trace;
  assign(t.impl()->rows, rows());
  return t;
}

Tensor Tensor::rows() const { return impl_->rows ? Tensor(impl_->rows) : Tensor(); }
Tensor Tensor::values() const {
  check<DTypeError>(is_row_sparse(), "values: ", *this, " is not row-sparse");
  Tensor t = detach();
  assign(t.impl()->rows, {});
  t.impl()->spec.shape[0] = rows().shape()[0];
  return t;
}
Tensor Tensor::row_sparse(const Tensor& rows, const Tensor& values, Dim V) {
  check(rows.rank() == 1 && values.rank() >= 1 && rows.shape()[0].rep() == values.shape()[0].rep(),
        "row_sparse: rows must be [n] and values [n, ...], got ", rows, " and ", values);
  Tensor t = values.detach();
  t.impl()->spec.shape[0] = V;
  assign(t.impl()->rows, rows);
  return t;
}

double Tensor::item() const {
  check(shape().known() && numel() == 1, "item() needs exactly one element, got ", *this);
  alignas(8) char raw[8];
  device().copy_out(raw, data(), size_of(dtype()));
  auto read = [&]<class T>(T v) {
    std::memcpy(&v, raw, sizeof v);
    return v;
  };
  switch (dtype()) {
    case DType::float64: return read(double{});
    case DType::float32: return read(float{});
    case DType::bfloat16: return std::bit_cast<float>(static_cast<uint32_t>(read(uint16_t{})) << 16);
    case DType::float16: return static_cast<double>(static_cast<float>(read(_Float16{})));
    case DType::int64: return static_cast<double>(read(int64_t{}));
    case DType::int32: return read(int32_t{});
    case DType::int8: return read(int8_t{});
    default: return read(uint8_t{});
  }
}

}  // namespace plmcore
