// What the optimiser steps share. Inputs of a step op: param, grad, the moments, scale, rows. `rows` is given
// for a row-sparse gradient, whose `grad` then holds the values of these rows of param.
#pragma once

#include <optional>

#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

// `moments` of them stand between grad and scale. An undefined one fails unless `optional`.
Specs infer_step(const char* op, const InSpecs& in, const Attrs& attrs, size_t moments,
                 bool optional = false);

// Of Adam and its kin. Steps count from 1; `first` may be 0 where that means something.
Specs infer_adam(const char* op, const InSpecs& in, const Attrs& attrs, int64_t first = 1);

void require_dense(const char* op, const InSpecs& in, size_t rows);

// One optimiser: its step op, the options of that op with their defaults, what it remembers of a parameter.
struct Optimiser {
  const char* name;
  const OpDef& op;
  AttrList options;  // with `lazy` it takes row-sparse gradients; the others look at whole tensors
  const char* moments = "mv";  // which of ParamState's stand between grad and scale
  // The shape of a parameter's moment; nothing where it keeps none.
  std::optional<Shape> (*shape)(char moment, const Shape& param, const AttrList& options) =
      [](char, const Shape& param, const AttrList&) -> std::optional<Shape> { return param; };
};
namespace optimisers {
extern const Optimiser sgd, adam, adamw, bert_adam, lamb, adafactor, adagrad, adadelta;
}
AttrList adam_options(double lr, double eps, double weight_decay, const Attr& own = {"lazy", false});

// One step of one parameter.
void step(const Optimiser& optimiser, const Tensor& param, const Tensor& grad, const Tensors& moments,
          const StepOptions& options, const Tensor& scale);

}  // namespace plmcore
