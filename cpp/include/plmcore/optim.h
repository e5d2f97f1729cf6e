// Stepping the parameters of a model in one call.
#pragma once

#include <span>

#include "plmcore/ops.h"

namespace plmcore {

struct Optimiser;
const Optimiser& optimiser_from_name(std::string_view name);  // sgd, adam, adamw, bert_adam, ...

// One trainable tensor and what its optimiser remembers of it.
struct ParamState {
  Tensor param;
  // Moments, undefined before the first step. SGD's velocity is m, Adagrad's sum is v, Adadelta's m is of
  // updates, Adafactor's are of rows and columns.
  Tensor m, v;
  int64_t step = 0;  // how often it was stepped
};

// Steps every parameter that has a gradient; makes the moments on first use. Steps are counted here; the
// option `step` 0 has LAMB do without bias correction.
void step_all(const Optimiser& optimiser, std::span<ParamState* const> states, const StepOptions& options,
              const Tensor& scale = {});

// The gradients of these parameters, for global_norm.
Tensors gradients(std::span<ParamState* const> states);
void ema_all(const Tensors& averages, const Tensors& params, double decay);  // ema_step for each pair
void zero_grad(std::span<ParamState* const> states);

}  // namespace plmcore
