// Tensor: a counted handle to a contiguous array on one device, with its place in the tape and in a running
// trace.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "plmcore/dim.h"
#include "plmcore/dtype.h"
#include "plmcore/small_vector.h"

namespace plmcore {

class Device;
Device& cpu();
// "cpu", "cuda", "cuda:1"; DeviceError that says what to install or to name.
Device& device_from_name(std::string_view name);

// Intrusive counting, shared by storages, tensors and tape nodes.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->retain();
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  ~Ref() {
    if (p_) p_->release();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  T* p_ = nullptr;
};

struct Counted {
  mutable std::atomic<int32_t> refs{0};
  void retain() const { refs.fetch_add(1, std::memory_order_relaxed); }
  bool drop() const { return refs.fetch_sub(1, std::memory_order_acq_rel) == 1; }
};

// What a device keeps with a block beside its values; only the device knows what it is.
struct Attachment {
  virtual ~Attachment() = default;
};

// A block of device memory. `owner` and `free_owner` are set for memory borrowed from elsewhere (NumPy,
// DLPack, mmap).
struct Storage : Counted {
  Storage(Device& device, size_t bytes);  // from the device's allocator
  Storage(Device& device, void* data, size_t bytes, void* owner, void (*free_owner)(void*));  // borrowed
  void release() const {
    if (drop()) delete this;
  }
  ~Storage();

  Device& device;
  void* data = nullptr;
  size_t bytes = 0;
  void* owner = nullptr;
  void (*free_owner)(void*) = nullptr;
  bool read_only = false;  // borrowed memory that must not be written: an op that works in place refuses it
  // Views through which others may write (NumPy, DLPack): while there is one, nothing may rest on the values.
  void lend();
  void take_back() { lent.fetch_sub(1); }
  std::atomic<int32_t> lent{0};
  std::atomic<Attachment*> attachment{nullptr};  // owned
};

// What an op's shape rule sees of a tensor.
struct Spec {
  Shape shape;
  DType dtype = DType::float32;
};
inline void append(std::string& text, const Spec& s) {
  append(text, s.dtype);
  append(text, s.shape);
}

struct Node;  // a step of the tape, cpp/autograd/tape.h
class Tensor;

struct TensorImpl : Counted {
  Spec spec;
  Device* device = nullptr;
  Ref<Storage> storage;  // null: a traced value, or a saved input of which only the shape is needed
  size_t offset = 0;  // bytes into the storage
  bool requires_grad = false;
  int32_t out_index = 0;  // which output of `grad_fn` this is
  int64_t trace = 0;  // of a traced value: the trace, and the value's number in it
  Node* grad_fn = nullptr;  // owned
  TensorImpl* grad = nullptr;  // owned
  // Owned; set for a row-sparse gradient: storage holds [rows, C] of a [V, C] tensor.
  TensorImpl* rows = nullptr;

  void release() const {
    if (drop()) delete this;
  }
  ~TensorImpl();
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorImpl* impl) : impl_(impl) {}
  static Tensor empty(const Shape& shape, DType dtype, Device& device = cpu());
  static Tensor zeros(const Shape& shape, DType dtype, Device& device = cpu());
  static Tensor scalar(double value, DType dtype, Device& device = cpu());
  static Tensor borrow(const Shape& shape, DType dtype, void* data, void* owner, void (*free_owner)(void*),
                       Device& device = cpu());

  bool defined() const { return static_cast<bool>(impl_); }
  const Spec& spec() const { return impl_->spec; }
  const Shape& shape() const { return impl_->spec.shape; }
  int rank() const { return shape().rank(); }
  Dim size(int axis) const;  // negative counts from the end
  DType dtype() const { return impl_->spec.dtype; }
  Device& device() const { return *impl_->device; }
  int64_t numel() const { return shape().numel().value(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype()); }
  bool has_data() const { return static_cast<bool>(impl_->storage); }
  void* data() const;  // TraceError for a traced value
  template <class T> T* as() const { return static_cast<T*>(data()); }

  bool requires_grad() const { return impl_->requires_grad; }
  const Tensor& set_requires_grad(bool on) const;  // DTypeError for integers, GraphError for a non-leaf
  bool is_leaf() const { return impl_->grad_fn == nullptr; }
  Tensor grad() const;  // undefined when there is none
  void set_grad(const Tensor& g) const;
  void backward(const Tensor& seed = {}, bool retain_graph = false) const;
  Tensor detach() const;  // the same memory outside the tape

  bool is_row_sparse() const { return impl_->rows != nullptr; }
  Tensor rows() const;  // int64 [n], sorted, unique
  Tensor values() const;  // [n, C]
  static Tensor row_sparse(const Tensor& rows, const Tensor& values, Dim V);

  Tensor to(Device& device) const;
  Tensor to(DType dtype) const;
  double item() const;  // ShapeError unless there is exactly one element

  TensorImpl* impl() const { return impl_.get(); }

 private:
  Ref<TensorImpl> impl_;
};
using Tensors = SmallVector<Tensor, 4>;
inline void append(std::string& text, const Tensor& t) {
  if (t.defined()) append(text, t.spec());
  else text += "none";
}

// Gradients of `outputs` with respect to `inputs` (leaves or inner tensors); an input the outputs do not
// reach gets an undefined tensor. Leaf .grad fields stay untouched.
Tensors grad(const Tensors& outputs, const Tensors& inputs, const Tensors& seeds = {},
             bool retain_graph = false);

bool grad_enabled();
bool set_grad_enabled(bool on);  // returns what it was; per thread
class NoGrad {  // switches recording off (or on) on this thread for its lifetime
 public:
  explicit NoGrad(bool enabled = false);
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;

 private:
  bool before_;
};

}  // namespace plmcore
