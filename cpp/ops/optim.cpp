#include "plmcore/optim.h"

namespace plmcore {

Optimiser optimiser_from_name(std::string_view name) {
  constexpr std::string_view names[] = {"sgd",  "adam",      "adamw",   "bert_adam",
                                        "lamb", "adafactor", "adagrad", "adadelta"};
  for (int i = 0; i < 8; ++i)
    if (names[i] == name) return static_cast<Optimiser>(i);
  fail<ValueError>(
      "an optimiser is one of sgd, adam, adamw, bert_adam, lamb, adafactor, adagrad, adadelta, got '", name,
      "'");
}

void step_all(Optimiser optimiser, std::span<ParamState* const> states, const StepOptions& options) {
  StepOptions o = options;
  for (ParamState* s : states) {
    const Tensor grad = s->param.grad();
    if (!grad.defined()) continue;
    const auto moment = [&](Tensor& t, const Shape& shape) {
      if (!t.defined())
        t = Tensor::zeros(shape, s->param.dtype() == DType::float64 ? DType::float64 : DType::float32,
                          s->param.device());
    };
    const Shape& shape = s->param.shape();
    const bool factored = optimiser == Optimiser::adafactor && shape.rank() >= 2;
    const bool has_m = optimiser == Optimiser::sgd         ? o.momentum != 0
                       : optimiser == Optimiser::adafactor ? factored
                                                           : optimiser != Optimiser::adagrad;
    if (has_m) moment(s->m, factored ? shape.drop_last() : shape);
    if (optimiser != Optimiser::sgd) moment(s->v, factored ? Shape{shape.back()} : shape);
    o.step = s->step + 1;
    switch (optimiser) {
      case Optimiser::sgd: sgd_step(s->param, grad, o.momentum != 0 ? s->m : Tensor(), o); break;
      case Optimiser::adam: adam_step(s->param, grad, s->m, s->v, o); break;
      case Optimiser::adamw: adamw_step(s->param, grad, s->m, s->v, o); break;
      case Optimiser::bert_adam: bert_adam_step(s->param, grad, s->m, s->v, o); break;
      case Optimiser::lamb: {
        if (options.step == 0) o.step = 0;
        lamb_step(s->param, grad, s->m, s->v, o);
        break;
      }
      case Optimiser::adafactor: adafactor_step(s->param, grad, s->m, s->v, o); break;
      case Optimiser::adagrad: adagrad_step(s->param, grad, s->v, o); break;
      case Optimiser::adadelta: adadelta_step(s->param, grad, s->m, s->v, o); break;
    }
    ++s->step;
  }
}

Tensors gradients(std::span<ParamState* const> states) {
  Tensors list;
  for (const ParamState* s : states)
    if (const Tensor g = s->param.grad(); g.defined()) list.push_back(g);
  return list;
}

void ema_all(const Tensors& averages, const Tensors& params, double decay) {
  check<ValueError>(averages.size() == params.size(), "ema_all: there are ", averages.size(),
                    " averages and ", params.size(), " parameters");
  for (size_t i = 0; i < params.size(); ++i) ema_step(averages[i], params[i], decay);
}

void zero_grad(std::span<ParamState* const> states) {
  for (const ParamState* s : states) s->param.set_grad({});
}

}  // namespace plmcore
