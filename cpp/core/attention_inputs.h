// The places of attention's inputs: what its definition checks and every device's kernel reads.
#pragma once

namespace plmcore::attention_inputs {

// Of attention and, with what its backward rule adds, of attention_grad.
enum Input {
  kQ,
  kK,
  kV,
  kLengths,
  kMask,
  kBias,
  kOffsets,
  kPrefix,
  kStart,
  kRandom,
  kInputs,
  kOut = kInputs,
  kLse,
  kDout,
  kWeights,
  kDweights
};

}  // namespace plmcore::attention_inputs
