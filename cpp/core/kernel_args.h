// What a kernel receives, on every device. Plain data: it crosses the plug-in boundary.
#pragma once

#include <cstdint>
#include <cstring>

#include "plmcore/dim.h"
#include "plmcore/dtype.h"

namespace plmcore {

struct Storage;

// A named attribute of an op call: a number, or a list of sizes. Keys are string literals.
struct Attr {
  enum Kind : int32_t { kInt, kFloat, kDims };
  const char* key = "";
  Kind kind = kInt;
  int64_t i = 0;
  double f = 0;
  Shape dims;

  Attr() = default;
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  Attr(const char* k, T v) : key(k), kind(kInt), i(static_cast<int64_t>(v)) {}
  template <class T>
    requires std::is_floating_point_v<T>
  Attr(const char* k, T v) : key(k), kind(kFloat), f(v) {}
  Attr(const char* k, const Shape& v) : key(k), kind(kDims), dims(v) {}
  Attr(const char* k, Dim v) : key(k), kind(kDims), dims{v} {}
};

// An array in device memory, contiguous, row-major. data == nullptr: an optional input that was not given.
struct View {
  void* data = nullptr;
  Storage* storage = nullptr;  // of an input that the device reads in any layout it has (Device::any_layout)
  int64_t numel = 0;
  int64_t size[Shape::kMaxRank] = {};
  int32_t rank = 0;
  DType dtype = DType::float32;

  explicit operator bool() const { return data != nullptr; }
  template <class T> T* as() const { return static_cast<T*>(data); }
  int64_t last() const { return rank ? size[rank - 1] : 1; }
  // The product of all axes but the last.
  int64_t rows() const { return last() ? numel / last() : outer(rank - 1); }
  int64_t outer(int axis) const {
    int64_t n = 1;
    for (int i = 0; i < axis; ++i) n *= size[i];
    return n;
  }
  int64_t inner(int axis) const {
    int64_t n = 1;
    for (int i = axis + 1; i < rank; ++i) n *= size[i];
    return n;
  }
};

struct KernelArgs {
  const View* in = nullptr;
  View* out = nullptr;
  const Attr* attrs = nullptr;
  int32_t n_in = 0, n_out = 0, n_attrs = 0;
  char* shared = nullptr;  // workspace of the whole call, 64-byte aligned
  char* private_ = nullptr;  // workspace of worker 0; the others follow
  size_t private_bytes = 0;  // of one worker
  void* device = nullptr;  // what a plug-in's `open` gave

  bool has(int i) const { return i < n_in && in[i].data != nullptr; }
  const Attr* find(const char* key) const {
    for (int k = 0; k < n_attrs; ++k)
      if (attrs[k].key == key || std::strcmp(attrs[k].key, key) == 0) return &attrs[k];
    return nullptr;
  }
  int64_t i(const char* key, int64_t missing = 0) const {
    const Attr* a = find(key);
    return a ? a->i : missing;
  }
  double f(const char* key, double missing = 0) const {
    const Attr* a = find(key);
    return a ? a->f : missing;
  }
  int64_t dim(const char* key, int k = 0) const {
    const Attr* a = find(key);
    return a && k < a->dims.rank() ? a->dims[k].rep() : 0;
  }
  template <class T> T* shared_as() const { return reinterpret_cast<T*>(shared); }
  template <class T> T* worker_as(int worker) const {
    return reinterpret_cast<T*>(private_ + static_cast<size_t>(worker) * private_bytes);
  }
};

// Column sums over many rows are taken per chunk of rows and then added in order. The number of chunks
// depends on the number of rows alone, so the sums are the same bits for any number of threads.
constexpr int64_t row_chunks(int64_t rows) {
  if (rows <= 16) return 1;
  return rows >= 1024 ? 64 : (rows + 15) / 16;
}
constexpr int64_t chunk_begin(int64_t rows, int64_t chunks, int64_t k) { return rows * k / chunks; }

// Memory that a kernel needs beside its outputs.
struct Workspace {
  size_t shared = 0;  // bytes for the whole call
  size_t per_worker = 0;  // bytes for each worker
};

// How a device computes an op. Each device has a table of these in the order of ops.def. A plug-in's `run`
// returns what went wrong, or null; the CPU's throws.
template <class Result>
struct KernelOf {
  Result (*run)(const KernelArgs& args) = nullptr;  // null: not on this device
  // Null: it needs none. It sees `args` without one.
  Workspace (*workspace)(const KernelArgs& args) = nullptr;
};
using KernelDef = KernelOf<void>;
using PluginKernelDef = KernelOf<const char*>;

}  // namespace plmcore
