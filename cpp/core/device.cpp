#include "core/device.h"

#include "plmcore/threads.h"

namespace plmcore {

void Device::compute(int id, const char* op, KernelArgs& args) {
  const Workspace need = workspace(id, args);
  if (!need.shared && !need.per_worker) return run(id, op, args);
  const auto aligned = [](size_t n) { return (n + 63) / 64 * 64; };
  const int count = workers();
  args.private_bytes = aligned(need.per_worker);
  const Ref<Storage> space(
      new Storage(*this, aligned(need.shared) + args.private_bytes * static_cast<size_t>(count)));
  args.shared = static_cast<char*>(space->data);
  args.private_ = args.shared + aligned(need.shared);
  const WorkerLimit limit(count);
  run(id, op, args);
}

}  // namespace plmcore
