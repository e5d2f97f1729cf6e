// Weights that lie in a mapped file otherwise than products want them: in several parts, or as [K, N]. To lay them out as [N, K] takes
// memory that nobody has touched, which costs more than the copying; so it is done when somebody looks at the values. Until then
// the products of inference that read a weight once for many rows read it where it lies.
#pragma once

#include "plmcore/tensor.h"

namespace plmcore {

struct StoredWeight {
  Tensors parts;            // the weight's rows, from the first to the last; none once it is laid out
  bool transposed = false;  // each of them
  int reads = 0;            // how often stored_weight was asked
};

// [N, K] of parts [n, K], or transposed [K, n], of one dtype. Takes no memory of its own before its values are looked at.
Tensor laid_out_later(const Tensors& parts, bool transposed);
// How the weight is stored, without parts where it has been laid out, or always was.
StoredWeight stored_weight(const Tensor& weight);
// For Tensor::data(): the values of a storage that has none yet; null where it never will.
void* lay_out(Storage& storage);

}  // namespace plmcore
