// The CPU: system memory, and kernels compiled for several instruction sets of which the best that runs is chosen once.
#include <cstdlib>
#include <cstring>

#include "core/device.h"
#include "core/isa.h"
#include "ops/op.h"
#include "plmcore/threads.h"

namespace plmcore {

namespace isa_v2 {
extern const KernelDef* const kernels[];
}
namespace isa_v3 {
extern const KernelDef* const kernels[];
}
namespace isa_v3w {
extern const KernelDef* const kernels[];
}
namespace isa_v4 {
extern const KernelDef* const kernels[];
}
namespace isa_base {
extern const KernelDef* const kernels[];
}

namespace {

struct Isa {
  const char* name;
  const KernelDef* const* kernels;
  bool runs;
};

const Isa& choose_isa() {
  static const Isa table[] = {
#ifdef PLM_HAS_v4
      {"v4", isa_v4::kernels, __builtin_cpu_supports("x86-64-v4") != 0},
#endif
#ifdef PLM_HAS_v3
      {"v3", isa_v3::kernels, __builtin_cpu_supports("x86-64-v3") != 0},
#endif
#ifdef PLM_HAS_v3w
      {"v3w", isa_v3w::kernels, __builtin_cpu_supports("x86-64-v3") != 0},
#endif
#ifdef PLM_HAS_v2
      {"v2", isa_v2::kernels, __builtin_cpu_supports("x86-64-v2") != 0},
#endif
#ifdef PLM_HAS_base
      {"base", isa_base::kernels, true},
#endif
  };
  const char* wish = std::getenv("PLMCORE_ISA");
  for (const Isa& isa : table)
    if (wish ? std::strcmp(wish, isa.name) == 0 && isa.runs : isa.runs) return isa;
  fail<DeviceError>(wish ? "PLMCORE_ISA names an instruction set that this processor or build does not have: "
                         : "this build has no kernels for this processor",
                    wish ? wish : "");
}
const Isa& isa() {
  static const Isa& chosen = choose_isa();
  return chosen;
}

class CpuDevice final : public Device {
 public:
  const char* name() const override { return "cpu"; }
  bool is_cpu() const override { return true; }
  void copy_in(void* dst, const void* host, size_t n) override { std::memcpy(dst, host, n); }
  void copy_out(void* host, const void* src, size_t n) override { std::memcpy(host, src, n); }
  void copy_within(void* dst, const void* src, size_t n) override { std::memcpy(dst, src, n); }
  void fill_zero(void* dst, size_t n) override { std::memset(dst, 0, n); }
  bool has_kernel(int id) const override { return isa().kernels[id] != nullptr; }
  int workers() const override { return num_threads(); }
  CachingAllocator& allocator() override { return allocator_; }
  Workspace workspace(int id, const KernelArgs& args) const override {
    const auto need = isa().kernels[id]->workspace;
    return need ? need(args) : Workspace();
  }
  void run(int id, const char*, const KernelArgs& args) override { isa().kernels[id]->run(args); }

 private:
  CachingAllocator allocator_{"cpu", system_memory()};
};

}  // namespace

const char* cpu_isa() { return isa().name; }

bool cpu_multiplies_bytes() {
#ifdef PLM_HAS_v4
  static const bool does = [] {
    const char* wish = std::getenv("PLMCORE_VNNI");
    check<ValueError>(!wish || std::strcmp(wish, "0") == 0 || std::strcmp(wish, "1") == 0, "PLMCORE_VNNI must be 0 or 1, got '", wish, "'");
    return isa().kernels == isa_v4::kernels && __builtin_cpu_supports("avx512vnni") && !(wish && std::strcmp(wish, "0") == 0);
  }();
  return does;
#else
  return false;
#endif
}

Device& cpu() {
  static CpuDevice* device = new CpuDevice;  // outlives every tensor
  return *device;
}

}  // namespace plmcore
