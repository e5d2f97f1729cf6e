#include "vectors/glove.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "plmcore/error.h"
#include "plmcore/threads.h"

namespace plmcore::vectors {

double glove(const GloveModel& model, const Record* records, int64_t n, int64_t threads) {
  const int64_t V = model.vocabulary;
  for (int64_t i = 0; i < n; ++i) {
    const Record& r = records[i];
    check<FormatError>(r.row >= 1 && r.row <= V && r.column >= 1 && r.column <= V,
                       "glove: the words of a record must be 1 to ", V, ", got ", r.row, " and ", r.column);
    check<FormatError>(r.value > 0 && std::isfinite(r.value),
                       "glove: the count of a record must be a number above 0, got ", r.value, " for words ",
                       r.row, " and ", r.column);
  }
  std::vector<double> costs(static_cast<size_t>(threads));
  parallel_for(threads, [&](int64_t i, int) {
    const int64_t begin = n * i / threads, end = n * (i + 1) / threads;
    costs[static_cast<size_t>(i)] = kernels().glove(model, records + begin, end - begin);
  });
  return std::accumulate(costs.begin(), costs.end(), 0.0);
}

}  // namespace plmcore::vectors
