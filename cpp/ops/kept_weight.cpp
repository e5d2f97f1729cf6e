#include "ops/kept_weight.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "core/device.h"
#include "core/fork.h"
#include "core/isa.h"
#include "core/pages.h"
#include "plmcore/ops.h"

namespace plmcore {

// One lock for the `packed` fields of all storages; held for a few instructions, never while packing.
static std::mutex& packed_mutex() {
  static std::mutex* mutex = [] {
    auto* m = new std::mutex;
    hold_over_fork(*m);
    return m;
  }();
  return *mutex;
}

bool own_products() {
  static const bool own = std::strcmp(cpu_isa(), "v3") == 0 || std::strcmp(cpu_isa(), "v4") == 0;
  return own;
}

static thread_local Packing packing_now = Packing::usual;
Packing set_packing(Packing p) { return std::exchange(packing_now, p); }

void keep_packed(const Tensor& weight) {
  if (own_products() && weight.has_data() && weight.device().is_cpu()) weight.impl()->storage->keeps_packed.store(true);
}

static constexpr int32_t kShortUses = 4;

Tensor kept_packed(const Tensor& weight, bool short_use) {
  if (!weight.has_data() || weight.dtype() != DType::float32 || weight.rank() != 2) return {};
  Storage& storage = *weight.impl()->storage;
  if (!storage.keeps_packed.load(std::memory_order_relaxed) || storage.lent.load() > 0) return {};
  const size_t from = weight.impl()->offset;
  {
    const std::lock_guard lock(packed_mutex());
    if (const PackedCopy* p = storage.packed) return p->from == from && p->shape.matches(weight.shape()) ? p->tensor : Tensor();
  }
  if (packing_now == Packing::found) return {};
  if (short_use && storage.short_uses.fetch_add(1, std::memory_order_relaxed) < kShortUses) return {};
  const NoGrad off;
  auto made = std::make_unique<PackedCopy>(pack_weight(weight.detach()), weight.shape(), from);
  Tensor packed = made->tensor;
  const std::lock_guard lock(packed_mutex());
  if (!storage.packed) storage.packed = made.release();
  release_file_pages(weight.data(), weight.bytes());  // products of more than a few rows read the copy from now on
  return packed;
}

void forget_packed(Storage& storage) {
  if (!storage.keeps_packed.load(std::memory_order_relaxed)) return;
  std::unique_ptr<PackedCopy> old;  // freed after the lock
  const std::lock_guard lock(packed_mutex());
  old.reset(std::exchange(storage.packed, nullptr));
}

void lend(Storage& storage) {
  storage.lent.fetch_add(1);
  forget_packed(storage);
}
void take_back(Storage& storage) { storage.lent.fetch_sub(1); }

}  // namespace plmcore
