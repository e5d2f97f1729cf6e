// cache[:, position ... position + T] = rows, in place.   cache [B, P, ...]; rows [B, T, ...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

void cache_append(const Tensor& cache, const Tensor& rows, Dim position) {
  dispatch(ops::cache_append, {cache, rows}, {{"position", position}});
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Spec &cache = in[0], &rows = in[1];
  check<DTypeError>(cache.dtype == rows.dtype, "cache_append: cache and rows must have one dtype, got ",
                    cache, " and ", rows);
  bool fits = cache.shape.rank() >= 2 && cache.shape.rank() == rows.shape.rank();
  for (int i = 0; fits && i < cache.shape.rank(); ++i)
    fits = i == 1 || require_equal(cache.shape[i], rows.shape[i]);
  check(fits, "cache_append: cache must be [B, P, ...] and rows [B, T, ...] of the same other sizes, got ",
        cache, " and ", rows);
  require_range("cache_append", attrs.dim("position"), attrs.dim("position") + rows.shape[1], cache.shape[1]);
  return {};
}

const OpDef ops::cache_append = {"cache_append", infer, no_grad, saves(), saves(), {.mutates = saves(0)}};

}  // namespace plmcore
