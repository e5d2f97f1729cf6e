#include "plmcore/optim.h"

#include <nanobind/stl/map.h>

#include "bindings/bindings.h"

namespace plmcore::bindings {

namespace {

using States = SmallVector<ParamState*, 32>;

States to_states(const nb::list& list) {
  States states;
  for (nb::handle h : list) states.push_back(nb::cast<ParamState*>(h));
  return states;
}
std::span<ParamState* const> span(const States& s) { return {s.data(), s.size()}; }

using AdamStep = void (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const StepOptions&,
                          const Tensor&);

// `own` is the flag that not all of Adam's kin have.
template <AdamStep step>
void bind_adam(nb::module_& m, const char* name, double eps, double weight_decay, const char* doc,
               const char* own = "lazy", bool set = false) {
  m.def(
      name,
      [own](const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v, double lr,
            double beta1, double beta2, double eps, double weight_decay, int64_t count, bool flag,
            const Optional& scale) {
        step(param, grad, m, v,
             {{"lr", lr},
              {"beta1", beta1},
              {"beta2", beta2},
              {"eps", eps},
              {"weight_decay", weight_decay},
              {"step", count},
              {own, flag}},
             scale);
      },
      "param"_a, "grad"_a, "m"_a, "v"_a, "lr"_a, "beta1"_a = 0.9, "beta2"_a = 0.999, "eps"_a = eps,
      "weight_decay"_a = weight_decay, "step"_a = 1, nb::arg(own) = set, "scale"_a = nb::none(), NoGil(),
      doc);
}

}  // namespace

void bind_optimisers(nb::module_& m) {
  m.def(
      "sgd_step",
      [](const Tensor& param, const Tensor& grad, const Optional& velocity, double lr, double momentum,
         bool nesterov, double weight_decay, bool lazy, const Optional& scale) {
        sgd_step(param, grad, velocity,
                 {{"lr", lr},
                  {"weight_decay", weight_decay},
                  {"momentum", momentum},
                  {"nesterov", nesterov},
                  {"lazy", lazy}},
                 scale);
      },
      "param"_a, "grad"_a, "velocity"_a = nb::none(), nb::kw_only(), "lr"_a, "momentum"_a = 0.0,
      "nesterov"_a = false, "weight_decay"_a = 0.0, "lazy"_a = false, "scale"_a = nb::none(), NoGil(),
      "In place: g = scale * grad + weight_decay * param; velocity = momentum * velocity + g; param -= lr * "
      "velocity (lr * g without velocity).");
  bind_adam<adam_step>(
      m, "adam_step", 1e-8, 0.0,
      "In place: Adam with weight decay inside the gradient; m, v [shape of param], float32.");
  bind_adam<adamw_step>(m, "adamw_step", 1e-8, 0.01,
                        "In place: Adam with decoupled weight decay; m, v [shape of param], float32.");
  bind_adam<bert_adam_step>(
      m, "bert_adam_step", 1e-6, 0.01,
      "In place: AdamW without bias correction, as BERT was trained; m, v [shape of param], float32.");
  bind_adam<lamb_step>(
      m, "lamb_step", 1e-6, 0.01,
      "In place: LAMB, AdamW with steps as long as the tensor, unless adapt is false; step 0: without bias "
      "correction; m, v [shape of param], float32.",
      "adapt", true);
  m.def(
      "adafactor_step",
      [](const Tensor& param, const Tensor& grad, const Tensor& v, const Optional& m, double lr, double eps,
         double weight_decay, double power, double floor, double threshold, bool relative, int64_t count,
         const Optional& scale) {
        adafactor_step(param, grad, m, v,
                       {{"lr", lr},
                        {"eps", eps},
                        {"weight_decay", weight_decay},
                        {"power", power},
                        {"floor", floor},
                        {"threshold", threshold},
                        {"relative", relative},
                        {"step", count}},
                       scale);
      },
      "param"_a, "grad"_a, "v"_a, "m"_a = nb::none(), nb::kw_only(), "lr"_a, "eps"_a = 1e-30,
      "weight_decay"_a = 0.0, "power"_a = 0.8, "floor"_a = 1e-3, "threshold"_a = 1.0, "relative"_a = true,
      "step"_a = 1, "scale"_a = nb::none(), NoGil(),
      "In place: Adafactor; of a matrix [..., C] the means m [...] and v [C], of a vector v alone, float32.");
  m.def(
      "adagrad_step",
      [](const Tensor& param, const Tensor& grad, const Tensor& v, double lr, double eps, double weight_decay,
         bool lazy, const Optional& scale) {
        adagrad_step(param, grad, v,
                     {{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}, {"lazy", lazy}}, scale);
      },
      "param"_a, "grad"_a, "v"_a, nb::kw_only(), "lr"_a, "eps"_a = 1e-10, "weight_decay"_a = 0.0,
      "lazy"_a = false, "scale"_a = nb::none(), NoGil(),
      "In place: Adagrad with weight decay inside the gradient; v, the sum of squares [shape of param], "
      "float32.");
  m.def(
      "adadelta_step",
      [](const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v, double lr, double rho,
         double eps, double weight_decay, bool lazy, const Optional& scale) {
        adadelta_step(
            param, grad, m, v,
            {{"lr", lr}, {"rho", rho}, {"eps", eps}, {"weight_decay", weight_decay}, {"lazy", lazy}}, scale);
      },
      "param"_a, "grad"_a, "m"_a, "v"_a, nb::kw_only(), "lr"_a = 1.0, "rho"_a = 0.95, "eps"_a = 1e-6,
      "weight_decay"_a = 0.0, "lazy"_a = false, "scale"_a = nb::none(), NoGil(),
      "In place: Adadelta with weight decay inside the gradient; m, v, the means of squared updates and "
      "gradients [shape of param], float32.");
  m.def("ema_step", &ema_step, "average"_a, "param"_a, "decay"_a, NoGil(),
        "In place: average += (1 - decay) * (param - average).");
  m.def("global_norm", &global_norm, "list"_a, NoGil(),
        "sqrt of the sum of squares over all tensors, float32 []; None is left out.");
  m.def("clip_scale", &clip_scale, "norm"_a, "max_norm"_a, NoGil(), "min(1, max_norm / norm), float32 [].");
}

void bind_optim(nb::module_& m) {
  nb::class_<ParamState>(m, "ParamState", "One trainable tensor and what its optimiser remembers of it.")
      .def(
          "__init__", [](ParamState* self, const Tensor& param) { new (self) ParamState{param}; }, "param"_a)
      .def_ro("param", &ParamState::param)
      .def_prop_rw(
          "m", [](const ParamState& s) { return from_tensor(s.m); },
          [](ParamState& s, const Optional& t) { s.m = t; }, nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "v", [](const ParamState& s) { return from_tensor(s.v); },
          [](ParamState& s, const Optional& t) { s.v = t; }, nb::for_setter(nb::arg("value").none()))
      .def_rw("step", &ParamState::step);
  m.def(
      "step_all",
      [](std::string_view optimiser, const nb::list& list, const StepOptions& options,
         const Optional& scale) {
        const States states = to_states(list);
        const ReleaseGil nogil;
        step_all(optimiser_from_name(optimiser), span(states), options, scale);
      },
      "optimiser"_a, "states"_a, "options"_a, "scale"_a = nb::none(),
      "Steps every parameter that has a gradient. Options that are not given have the optimiser's defaults.");
  m.def(
      "gradients", [](const nb::list& list) { return gradients(span(to_states(list))); }, "states"_a,
      "The gradients that the parameters have.");
  m.def("ema_all", &ema_all, "averages"_a, "params"_a, "decay"_a, NoGil(), "ema_step for each pair.");
  m.def("zero_grad", [](const nb::list& list) { zero_grad(span(to_states(list))); }, "states"_a);
}

}  // namespace plmcore::bindings
