#include "ops/stored_weight.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "core/device.h"
#include "core/fork.h"
#include "core/pages.h"
#include "ops/op.h"
#include "plmcore/error.h"

namespace plmcore {

namespace {

struct Later {  // the owner of a storage whose `data` is null before its values are made
  StoredWeight stored;
  Ref<Storage> made;
};
void drop(void* later) { delete static_cast<Later*>(later); }

// One lock for the owners of all such storages; held for a few instructions, never while values are made.
std::mutex& later_mutex() {
  static std::mutex* mutex = [] {
    auto* m = new std::mutex;
    hold_over_fork(*m);
    return m;
  }();
  return *mutex;
}

std::atomic_ref<void*> address(Storage& storage) { return std::atomic_ref<void*>(storage.data); }

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

// The kernels themselves, not the ops: a trace that is running has nothing to do with this.
void write_part(const Tensor& part, bool transposed, char* to) {
  const int64_t rows = part.shape()[0].value(), columns = part.shape()[1].value();
  const View from = matrix(part.data(), part.dtype(), rows, columns);
  View into = transposed ? matrix(to, part.dtype(), columns, rows) : matrix(to, part.dtype(), rows, columns);
  const Attr order("order", Shape{1, 0});
  KernelArgs args;
  args.in = &from;
  args.out = &into;
  args.n_in = args.n_out = 1;
  args.attrs = &order;
  args.n_attrs = transposed ? 1 : 0;
  const OpDef& op = transposed ? ops::transpose : ops::copy;
  cpu().run(op_id(op), op.name, args);
}

}  // namespace

Tensor laid_out_later(const Tensors& parts, bool transposed) {
  check(!parts.empty(), "a stored weight needs at least one part");
  const int along = transposed ? 1 : 0;
  int64_t N = 0;
  for (const Tensor& p : parts) {
    check(p.rank() == 2 && p.dtype() == parts[0].dtype() && p.shape()[1 - along].is(parts[0].shape()[1 - along].value()),
          "the parts of a stored weight must be matrices of one dtype and width, got ", p, " and ", parts[0]);
    check<DeviceError>(p.device().is_cpu(), "a stored weight must be on the cpu, got ", p.device().name());
    N += p.shape()[along].value();
  }
  const Shape shape = {N, parts[0].shape()[1 - along]};
  StoredWeight stored{{}, transposed, 0};
  for (const Tensor& p : parts) stored.parts.push_back(p.detach());
  Tensor t = Tensor::borrow(shape, parts[0].dtype(), nullptr, new Later{std::move(stored), {}}, drop);
  return t;
}

static bool is_later(const Storage& storage) { return storage.free_owner == drop; }

StoredWeight stored_weight(const Tensor& weight) {
  if (!weight.has_data()) return {};
  Storage& storage = *weight.impl()->storage;
  if (!is_later(storage) || weight.impl()->offset != 0 || weight.bytes() != storage.bytes || address(storage).load()) return {};
  const std::lock_guard lock(later_mutex());
  StoredWeight& stored = static_cast<Later*>(storage.owner)->stored;
  ++stored.reads;
  return stored;
}

void* lay_out(Storage& storage) {
  if (!is_later(storage)) return nullptr;  // memory of no bytes
  Later& later = *static_cast<Later*>(storage.owner);
  StoredWeight stored;
  {
    const std::lock_guard lock(later_mutex());
    stored = later.stored;
  }
  if (!stored.parts.empty()) {
    const Ref<Storage> made(new Storage(storage.device, storage.bytes));
    char* to = static_cast<char*>(made->data);
    for (const Tensor& p : stored.parts) {
      write_part(p, stored.transposed, to);
      to += p.bytes();
    }
    Tensors done;  // freed after the lock
    const std::lock_guard lock(later_mutex());
    if (!later.made) {  // no other thread was faster
      later.made = made;
      done = std::exchange(later.stored.parts, {});
      address(storage).store(made->data, std::memory_order_release);
    }
  }
  for (const Tensor& p : stored.parts) release_file_pages(p.data(), p.bytes());
  return address(storage).load(std::memory_order_acquire);
}

}  // namespace plmcore
