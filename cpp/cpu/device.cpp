// The CPU: system memory, and kernels compiled for several instruction sets of which the best that runs is
// chosen once.
#include <cstdlib>
#include <cstring>

#include "core/device.h"
#include "core/isa.h"
#include "core/op_ids.h"
#include "cpu/perturb.h"
#include "cpu/weight_layouts.h"
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
  CachingAllocator& allocator() override { return allocator_; }
  Place dlpack() const override { return {1, 0}; }

  uint64_t any_layout(int id) const override { return id == ops::id_linear ? 1 << 1 : 0; }
  void* lay_out(Storage& storage) override { return plmcore::lay_out(storage); }
  void keep_layouts(Storage& storage) override { plmcore::keep_layouts(storage); }
  void forget_layouts(Storage& storage) override { plmcore::forget_layouts(storage); }
  void compute(int id, const char* op, KernelArgs& args) override {
    if (id == ops::id_linear && args.in[1].storage) linear(args);
    else if (!isa().kernels[id]->workspace) run(id, op, args);  // as most small ops
    else Device::compute(id, op, args);
  }

 protected:
  int workers() const override { return num_threads(); }
  Workspace workspace(int id, const KernelArgs& args) const override {
    const auto need = isa().kernels[id]->workspace;
    return need ? need(args) : Workspace();
  }
  void run(int id, const char*, const KernelArgs& args) override {
    isa().kernels[id]->run(args);
#ifdef PLM_TEST_HOOKS
    perturb(id, args);
#endif
  }

 private:
  void linear(KernelArgs& args);

  CachingAllocator allocator_{"cpu", system_memory()};
};

// x W^T in the layout of W that pays. Bias, activation and output are those of the whole.
void CpuDevice::linear(KernelArgs& args) {
  View in[] = {args.in[0], args.in[1], args.in[2]};
  const View& x = in[0];
  const View bias = in[2], whole = args.out[0];
  args.in = in;
  WeightChoice choice;
  if (x.dtype == DType::float32 && x.numel > 0 && args.n_out == 1) choice = choose_layout(in[1], x.rows());
  else if (!in[1].data) in[1].data = plmcore::lay_out(*in[1].storage);
  if (choice.packed.defined()) {
    in[1].data = choice.packed.data();
    return Device::compute(ops::id_linear_packed, "linear", args);
  }
  if (choice.stored.parts.empty()) return Device::compute(ops::id_linear, "linear", args);

  const Attr attrs[] = {{"activation", args.i("activation")}, {"transposed", choice.stored.transposed}};
  args.attrs = attrs;
  args.n_attrs = 2;
  View y = whole;
  args.out = &y;
  int64_t from = 0;  // the part's first column of y
  for (const Tensor& part : choice.stored.parts) {
    for (int axis = 0; axis < 2; ++axis) in[1].size[axis] = part.shape()[axis].value();
    in[1].data = part.data();
    in[1].numel = part.numel();
    y.data = whole.as<float>() + from;
    if (bias) in[2].data = bias.as<float>() + from;
    Device::compute(ops::id_linear, "linear", args);
    from += in[1].size[choice.stored.transposed ? 1 : 0];
  }
}

}  // namespace

const char* cpu_isa() { return isa().name; }

bool cpu_multiplies_bytes() {
#ifdef PLM_HAS_v4
  static const bool does = [] {
    const char* wish = std::getenv("PLMCORE_VNNI");
    check<ValueError>(!wish || std::strcmp(wish, "0") == 0 || std::strcmp(wish, "1") == 0,
                      "PLMCORE_VNNI must be 0 or 1, got '", wish, "'");
    return isa().kernels == isa_v4::kernels && __builtin_cpu_supports("avx512vnni") &&
           !(wish && std::strcmp(wish, "0") == 0);
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
