#include "cpu/weight_layouts.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "core/device.h"
#include "core/fork.h"
#include "core/isa.h"
#include "core/op_ids.h"
#include "core/pages.h"
#include "kernels/gemm_space.h"
#include "plmcore/error.h"

namespace plmcore {

namespace {

constexpr int64_t kRowsWorthPacking = 64;
constexpr int32_t kShortUses = 4;  // where a use gains little, the first few wait for no copy
// Our own products lose an eighth over [K, N], and keep no packed copies of parts: after so many the better
// layout pays. A BLAS loses nothing.
constexpr int kStoredReads = 4;

struct WeightLayouts final : Attachment {
  StoredWeight stored;
  bool keeps_packed = false;
  int32_t short_uses = 0;
  Tensor packed;  // of the matrix `shape` at the offset `from`
  Shape shape;
  size_t from = 0;
};

// One lock for the layouts of all weights; held for a few instructions, never while one is made.
std::mutex& layouts_mutex() {
  static std::mutex* mutex = [] {
    auto* m = new std::mutex;
    hold_over_fork(*m);
    return m;
  }();
  return *mutex;
}

WeightLayouts* layouts_of(const Storage& storage) {
  return static_cast<WeightLayouts*>(storage.attachment.load(std::memory_order_acquire));
}
std::atomic_ref<void*> address(Storage& storage) { return std::atomic_ref<void*>(storage.data); }

// Whether plain products run on the engine of packed ones, our own, so that the layout of a weight changes no
// bit of a result.
bool own_products() {
  static const bool own = std::strcmp(cpu_isa(), "v3") == 0 || std::strcmp(cpu_isa(), "v4") == 0;
  return own;
}

thread_local Packing packing_now = Packing::usual;

View matrix(void* data, DType dtype, int64_t rows, int64_t columns) {
  View v;
  v.data = data;
  v.dtype = dtype;
  v.rank = 2;
  v.size[0] = rows;
  v.size[1] = columns;
  v.numel = rows * columns;
  return v;
}

void run_unary(int id, const View& from, View& to, const Attr* attr = nullptr) {
  KernelArgs args;
  args.in = &from;
  args.out = &to;
  args.n_in = args.n_out = 1;
  args.attrs = attr;
  args.n_attrs = attr ? 1 : 0;
  cpu().compute(id, "layout", args);
}

void write_part(const Tensor& part, bool transposed, char* to) {
  const int64_t rows = part.shape()[0].value(), columns = part.shape()[1].value();
  const View from = matrix(part.data(), part.dtype(), rows, columns);
  if (transposed) {
    const Attr order("order", Shape{1, 0});
    View into = matrix(to, part.dtype(), columns, rows);
    run_unary(ops::id_transpose, from, into, &order);
  } else {
    View into = matrix(to, part.dtype(), rows, columns);
    run_unary(ops::id_copy, from, into);
  }
}

Tensor packed_copy(const View& weight) {
  const int64_t N = weight.size[0], K = weight.size[1];
  Tensor packed = Tensor::empty({(N + kGemmPanel - 1) / kGemmPanel * kGemmPanel, K}, DType::float32);
  View into = matrix(packed.data(), DType::float32, packed.shape()[0].value(), K);
  run_unary(ops::id_pack_weight, weight, into);
  return packed;
}

// Parts are read where they lie by 9 to 192 rows: a single row would read them across, and with many a better
// layout pays.
StoredWeight stored_parts(Storage& storage, int64_t rows) {
  if (rows <= kGemmFewRows || rows > kGemmRows || address(storage).load()) return {};
  const std::lock_guard lock(layouts_mutex());
  StoredWeight& stored = layouts_of(storage)->stored;
  if (stored.parts.empty() || (own_products() && ++stored.reads > kStoredReads)) return {};
  return stored;
}

Tensor packed_weight(const View& weight, bool short_use) {
  Storage& storage = *weight.storage;
  WeightLayouts& layouts = *layouts_of(storage);
  if (storage.lent.load() > 0) return {};
  const auto from = static_cast<size_t>(weight.as<char>() - static_cast<char*>(storage.data));
  const Shape shape = {weight.size[0], weight.size[1]};
  {
    const std::lock_guard lock(layouts_mutex());
    if (!layouts.keeps_packed) return {};
    if (layouts.packed.defined())
      return layouts.from == from && layouts.shape.matches(shape) ? layouts.packed : Tensor();
    if (packing_now == Packing::found || (short_use && layouts.short_uses++ < kShortUses)) return {};
  }
  Tensor made = packed_copy(weight);
  {
    const std::lock_guard lock(layouts_mutex());
    if (!layouts.packed.defined()) {
      layouts.packed = made;
      layouts.shape = shape;
      layouts.from = from;
    }
  }
  release_file_pages(weight.data,
                     static_cast<size_t>(weight.numel) * sizeof(float));  // the copy is read from now on
  return made;
}

}  // namespace

Packing set_packing(Packing p) { return std::exchange(packing_now, p); }

Tensor laid_out_later(const Tensors& parts, bool transposed) {
  check(!parts.empty(), "a stored weight needs at least one part");
  const int along = transposed ? 1 : 0;
  int64_t N = 0;
  for (const Tensor& p : parts) {
    check(p.rank() == 2 && p.dtype() == parts[0].dtype() &&
              p.shape()[1 - along].is(parts[0].shape()[1 - along].value()),
          "the parts of a stored weight must be matrices of one dtype and width, got ", p, " and ", parts[0]);
    check<DeviceError>(p.device().is_cpu(), "a stored weight must be on the cpu, got ", p.device().name());
    N += p.shape()[along].value();
  }
  const Shape shape = {N, parts[0].shape()[1 - along]};
  auto layouts = std::make_unique<WeightLayouts>();
  layouts->stored.transposed = transposed;
  for (const Tensor& p : parts) layouts->stored.parts.push_back(p.detach());
  Tensor t = Tensor::borrow(shape, parts[0].dtype(), nullptr, nullptr, nullptr);
  t.impl()->storage->attachment.store(layouts.release());
  return t;
}

WeightChoice choose_layout(View& weight, int64_t rows) {
  if (!weight.data) {
    if (StoredWeight stored = stored_parts(*weight.storage, rows); !stored.parts.empty())
      return {std::move(stored), {}};
    weight.data = lay_out(*weight.storage);
  }
  if (rows < kRowsWorthPacking || !layouts_of(*weight.storage)) return {};
  return {{}, packed_weight(weight, rows <= kGemmRows)};
}

void keep_layouts(Storage& storage) {
  if (!own_products()) return;
  if (!layouts_of(storage)) {
    auto made = std::make_unique<WeightLayouts>();
    Attachment* none = nullptr;
    if (storage.attachment.compare_exchange_strong(none, made.get())) (void)made.release();
  }
  const std::lock_guard lock(layouts_mutex());
  layouts_of(storage)->keeps_packed = true;
}

void forget_layouts(Storage& storage) {
  WeightLayouts* layouts = layouts_of(storage);
  if (!layouts) return;
  Tensor old;  // freed after the lock
  const std::lock_guard lock(layouts_mutex());
  std::swap(old, layouts->packed);
}

void* lay_out(Storage& storage) {
  WeightLayouts* layouts = layouts_of(storage);
  if (!layouts) return nullptr;  // memory of no bytes
  StoredWeight stored;
  {
    const std::lock_guard lock(layouts_mutex());
    stored = layouts->stored;
  }
  if (!stored.parts.empty()) {
    CachingAllocator& memory = storage.device.allocator();
    char* const made = static_cast<char*>(memory.allocate(storage.bytes));
    char* to = made;
    for (const Tensor& p : stored.parts) {
      write_part(p, stored.transposed, to);
      to += p.bytes();
    }
    Tensors done;  // freed after the lock
    const std::lock_guard lock(layouts_mutex());
    if (layouts->stored.parts.empty()) {  // another thread was faster
      memory.free(made, storage.bytes);
    } else {
      done = std::exchange(layouts->stored.parts, {});
      address(storage).store(made, std::memory_order_release);
    }
  }
  for (const Tensor& p : stored.parts) release_file_pages(p.data(), p.bytes());
  return address(storage).load(std::memory_order_acquire);
}

}  // namespace plmcore
