// Grad mode, gradients of chosen tensors, recomputation.
#include "autograd/tape.h"

#include <cxxabi.h>

#include <memory>

#include "bindings/bindings.h"

namespace plmcore::bindings {

namespace {

// A Python function as one that native code may keep, call and drop on any thread.
std::function<Tensors(const Tensors&)> native(nb::object function) {
  const std::shared_ptr<PyObject> held(function.release().ptr(),
                                       [](PyObject* p) { with_gil_unless_gone([p] { Py_DECREF(p); }); });
  return [held](const Tensors& inputs) {
    const HoldGil gil;
    try {
      return to_tensors(nb::borrow(held.get())(from_tensors(inputs)));
    } catch (const abi::__forced_unwind&) {  // pthread_exit: see take_gil
      for (;;) pause();
    }
  };
}

}  // namespace

void bind_autograd(nb::module_& m) {
  m.def("grad_enabled", &grad_enabled, "Whether ops on this thread are recorded for gradients.");
  m.def("set_grad_enabled", &set_grad_enabled, "on"_a,
        "Recording of gradients on this thread; returns what it was.");
  m.def("rounds_activations", &rounds_activations, "Whether what this thread records is kept in bfloat16.");
  m.def("set_rounds_activations", &set_rounds_activations, "on"_a,
        "Keeping activations in bfloat16 on this thread; returns what it was.");
  m.def(
      "grad",
      [](Tensors outputs, Tensors inputs, Tensors seeds, bool retain) {
        const ReleaseGil nogil;
        return grad(outputs, inputs, seeds, retain);
      },
      "outputs"_a, "inputs"_a, "seeds"_a = nb::make_tuple(), "retain_graph"_a = false);
  m.def(
      "recompute",
      [](nb::object body, Tensors inputs, Tensors params) {
        auto function = native(std::move(body));
        const ReleaseGil nogil;
        return recompute(std::move(function), inputs, params);
      },
      "body"_a, "inputs"_a, "params"_a,
      "body(inputs), a function of a tuple of tensors to another, without keeping what it computes inside.");
}

}  // namespace plmcore::bindings
