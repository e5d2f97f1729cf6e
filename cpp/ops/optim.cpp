#include "plmcore/optim.h"

namespace plmcore {

Optimiser optimiser_from_name(std::string_view name) {
  constexpr std::string_view names[] = {"sgd", "adam", "adamw", "bert_adam"};
  for (int i = 0; i < 4; ++i)
    if (names[i] == name) return static_cast<Optimiser>(i);
  fail<ValueError>("an optimiser is one of sgd, adam, adamw, bert_adam, got '", name, "'");
}

void step_all(Optimiser optimiser, std::span<ParamState* const> states, const StepOptions& options) {
  StepOptions o = options;
  for (ParamState* s : states) {
    const Tensor grad = s->param.grad();
    if (!grad.defined()) continue;
    const auto moment = [&](Tensor& t) {
      if (!t.defined())
        t = Tensor::zeros(s->param.shape(), s->param.dtype() == DType::float64 ? DType::float64 : DType::float32, s->param.device());
    };
    if (optimiser != Optimiser::sgd || o.momentum != 0) moment(s->m);
    if (optimiser != Optimiser::sgd) moment(s->v);
    o.step = s->step + 1;
    switch (optimiser) {
      case Optimiser::sgd: sgd_step(s->param, grad, o.momentum != 0 ? s->m : Tensor(), o); break;
      case Optimiser::adam: adam_step(s->param, grad, s->m, s->v, o); break;
      case Optimiser::adamw: adamw_step(s->param, grad, s->m, s->v, o); break;
      case Optimiser::bert_adam: bert_adam_step(s->param, grad, s->m, s->v, o); break;
    }
    s->step = o.step;
  }
}

Tensors gradients(std::span<ParamState* const> states) {
  Tensors list;
  for (const ParamState* s : states)
    if (const Tensor g = s->param.grad(); g.defined()) list.push_back(g);
  return list;
}

void ema_all(const Tensors& averages, const Tensors& params, double decay) {
  check<ValueError>(averages.size() == params.size(), "ema_all: there are ", averages.size(), " averages and ", params.size(),
                    " parameters");
  for (size_t i = 0; i < params.size(); ++i) ema_step(averages[i], params[i], decay);
}

void zero_grad(std::span<ParamState* const> states) {
  for (const ParamState* s : states) s->param.set_grad({});
}

}  // namespace plmcore
