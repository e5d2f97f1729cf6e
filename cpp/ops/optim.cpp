#include "plmcore/optim.h"

#include "ops/step_rules.h"

namespace plmcore {

const Optimiser& optimiser_from_name(std::string_view name) {
  using namespace optimisers;
  for (const Optimiser* o : {&sgd, &adam, &adamw, &bert_adam, &lamb, &adafactor, &adagrad, &adadelta})
    if (name == o->name) return *o;
  fail<ValueError>("an optimiser is one of sgd, adam, adamw, bert_adam, lamb, adafactor, adagrad, adadelta, ",
                   "got '", name, "'");
}

static Attr* find(AttrList& list, std::string_view name) {
  for (Attr& a : list)
    if (name == a.key) return &a;
  return nullptr;
}

static AttrList with_defaults(const Optimiser& optimiser, const StepOptions& given) {
  AttrList options = optimiser.options;
  for (const auto& [name, value] : given) {
    Attr* option = find(options, name);
    check<ValueError>(option, optimiser.name, ": there is no option '", name, "'");
    if (option->kind == Attr::kInt) option->i = static_cast<int64_t>(value);
    else option->f = value;
  }
  return options;
}

static void run(const Optimiser& optimiser, const Tensor& param, const Tensor& grad, const Tensors& moments,
                AttrList& options, const Tensor& scale) {
  const Tensor given = find(options, "lazy") ? grad : to_dense(grad);
  const Tensor rows = given.rows(), values = rows.defined() ? given.values() : given;
  const Tensor &first = moments[0], &second = moments.back();
  if (moments.size() == 1) dispatch(optimiser.op, {param, values, first, scale, rows}, options);
  else dispatch(optimiser.op, {param, values, first, second, scale, rows}, options);
}

void step(const Optimiser& optimiser, const Tensor& param, const Tensor& grad, const Tensors& moments,
          const StepOptions& given, const Tensor& scale) {
  AttrList options = with_defaults(optimiser, given);
  run(optimiser, param, grad, moments, options, scale);
}

void step_all(const Optimiser& optimiser, std::span<ParamState* const> states, const StepOptions& given,
              const Tensor& scale) {
  AttrList options = with_defaults(optimiser, given);
  Attr* count = find(options, "step");
  const bool counts = count && count->i != 0;
  for (ParamState* s : states) {
    const Tensor grad = s->param.grad();
    if (!grad.defined()) continue;
    const DType dtype = s->param.dtype() == DType::float64 ? DType::float64 : DType::float32;
    Tensors moments;
    for (const char name : std::string_view(optimiser.moments)) {
      Tensor& moment = name == 'm' ? s->m : s->v;
      const std::optional<Shape> shape = optimiser.shape(name, s->param.shape(), options);
      if (shape && !moment.defined()) moment = Tensor::zeros(*shape, dtype, s->param.device());
      moments.push_back(shape ? moment : Tensor());
    }
    if (counts) count->i = s->step + 1;
    run(optimiser, s->param, grad, moments, options, scale);
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
