// One vector for a sequence, of those of its tokens: docs/program-format.md.
#pragma once

#include "plmcore/card.h"

namespace plmcore {

// states float32 [B, T, C], mask int64 [B, T] -> float32 [B, C * modes]
Tensor pooled(const Pooling& how, const Tensor& states, const Tensor& mask);

}  // namespace plmcore
