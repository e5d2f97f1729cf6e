// Threads, memory, random state, devices.
#include "autograd/tape.h"
#include "bindings/bindings.h"
#include "blas/blas.h"
#include "core/available_memory.h"
#include "core/device.h"
#include "core/isa.h"
#include "core/plugin.h"
#include "cpu/perturb.h"
#include "plmcore/random.h"
#include "plmcore/threads.h"

namespace plmcore::bindings {

namespace {
// Ctrl-C during a long native loop: Python's handler runs here and its exception ends the loop.
void poll_python() {
  if (PyGILState_Check()) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return;
  }
  static thread_local int calls = 0;
  if (++calls % 16) return;
  const HoldGil gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}
}  // namespace

void bind_runtime(nb::module_& m) {
  interrupt_hook.store(poll_python);
  m.def("num_threads", &num_threads, "The number of threads of the pool.");
  m.def("set_num_threads", &set_num_threads, "n"_a, "Threads of the pool; results do not depend on it.");
  m.def("manual_seed", &manual_seed, "seed"_a, "Seeds the random numbers of the calling thread.");
  m.def(
      "random_state",
      [] {
        const RandomState s = random_state();
        return std::vector<int64_t>{s.seed, s.offset};
      },
      "The [seed, offset] of the calling thread's random numbers.");
  m.def(
      "set_random_state", [](int64_t seed, int64_t offset) { set_random_state({seed, offset, {}}); },
      "seed"_a, "offset"_a, "Continues the calling thread's random numbers from random_state().");
  m.def(
      "memory_stats",
      [](nb::handle device) {
        const MemoryStats s = to_device(device).allocator().stats();
        nb::dict d;
        d["in_use"] = s.in_use;
        d["peak"] = s.peak;
        d["reserved"] = s.reserved;
        d["cap"] = s.cap;
        d["allocations"] = s.allocations;
        d["system_allocations"] = s.system_allocations;
        return d;
      },
      "device"_a = nb::none(),
      "Memory of a device in bytes: in_use, peak, reserved, cap; and the counts allocations, "
      "system_allocations.");
  m.def(
      "reset_peak_memory", [](nb::handle d) { to_device(d).allocator().reset_peak(); },
      "device"_a = nb::none(), "Sets the peak of memory_stats to the memory in use.");
  m.def(
      "set_memory_cap", [](size_t bytes, nb::handle d) { to_device(d).allocator().set_cap(bytes); },
      "bytes"_a, "device"_a = nb::none(), "MemoryError above this many bytes; 0 lifts the cap.");
  m.def(
      "trim_memory", [](nb::handle d) { to_device(d).allocator().trim(); }, "device"_a = nb::none(),
      "Gives cached memory back to the system.");
  m.def(
      "available_memory", [] { return available_memory(); },
      "How many bytes the system could still give to this process.");
  m.def("isa", &cpu_isa, "The instruction set of the CPU kernels in use.");
  m.def("multiplies_bytes", &cpu_multiplies_bytes,
        "Whether products with int8 weights multiply bytes: AVX512-VNNI.");
  m.def("blas", &blas::name);
  m.def(
      "synchronize",
      [](nb::handle d) {
        Device& device = to_device(d);
        const ReleaseGil nogil;
        device.synchronize();
      },
      "device"_a, "Waits for what a device has queued.");
  m.def(
      "device_waits", [](nb::handle d) { return to_device(d).waits(); }, "device"_a,
      "How often the host has waited for a device: reads of its values, and synchronize().");
  m.def("device_problem", &plugin_problem, "device"_a, "Why a device cannot be used; empty when it can.");
  m.def(
      "is_dtype",
      [](nb::handle h) {
        if (!nb::isinstance<nb::str>(h)) return true;
        for (int i = 0; i < kDTypes; ++i)
          if (nb::cast<std::string_view>(h) == name_of(static_cast<DType>(i))) return true;
        return false;
      },
      "target"_a, "Whether what .to() is given means a dtype; else it is the name of a device.");
  m.def("op_names", [] {
    std::vector<std::string> n;
    for (int i = 0; i < ops::kCount; ++i) n.push_back(all_ops()[i]->name);
    return n;
  });
  m.def(
      "has_kernel",
      [](std::string_view op, nb::handle device) {
        const OpDef* d = find_op(op);
        check<ValueError>(d, "there is no op '", op, "'");
        return d->extra.view || to_device(device).has_kernel(op_id(*d));
      },
      "op"_a, "device"_a = nb::none(), "Whether the op runs on this device.");
#ifdef PLM_TEST_HOOKS
  m.def("negate_backward", &negate_backward, "op"_a,
        "Test builds only: this op's backward rule returns its negative; \"\" for none.");
  m.def("perturb_kernel", &perturb_kernel, "op"_a, "mutation"_a = "scale", "written"_a = 0, "part"_a = 0,
        "Test builds only: this op's CPU kernel spoils a tensor that it writes; \"\" for none.");
  m.def(
      "perturbed", [] { return nb::make_tuple(perturbed().values, perturbed().tensors); },
      "Test builds only: (values changed, tensors that a call writes) since perturb_kernel.");
#endif
  m.def(
      "is_differentiable",
      [](std::string_view op) {
        const OpDef* d = find_op(op);
        check<ValueError>(d, "there is no op '", op, "'");
        return d->backward != nullptr;
      },
      "op"_a);
}

}  // namespace plmcore::bindings
