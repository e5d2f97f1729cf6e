// What the optimiser steps share. Inputs of a step op: param, grad, the moments, scale, rows. `rows` is given
// for a row-sparse gradient, whose `grad` then holds the values of these rows of param.
#pragma once

#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

// `moments` of them stand between grad and scale. An undefined one fails unless `optional`.
Specs infer_step(const char* op, const InSpecs& in, const Attrs& attrs, size_t moments,
                 bool optional = false);

// The ranges of Adam's attributes; steps count from 1, `first` may be 0 where that means something.
void check_adam(const char* op, const Attrs& attrs, int64_t first = 1);

// A row-sparse gradient as a tensor of param's shape, for the steps that look at whole tensors.
Tensor dense_gradient(const Tensor& grad);
void require_dense(const char* op, const InSpecs& in, size_t rows);

// Dispatches adam_step or one of its kin, with attributes of its own.
void dispatch_adam(const OpDef& op, const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                   const StepOptions& o, const AttrList& own = {});

}  // namespace plmcore
