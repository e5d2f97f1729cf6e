// The trainer of GloVe. kernels/glove.cpp has the maths.
#pragma once

#include "vectors/kernels.h"

namespace plmcore::vectors {

// Trains on records in parts of equal size, one to a thread; the sum of the costs. FormatError, and nothing
// changed, where a record has an id outside of the vocabulary or a value that is not above 0.
double glove(const GloveModel& model, const Record* records, int64_t n, int64_t threads);

}  // namespace plmcore::vectors
