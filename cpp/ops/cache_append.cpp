// cache[:, position ... position + T] = rows, in place.   cache [B, P, ...]; rows [B, T, ...]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

void cache_append(const Tensor& cache, const Tensor& rows, Dim position) {
  dispatch(ops::cache_append, {cache, rows}, {{"position", position}});
}

Tensor attend_cached(const Tensor& qkv, const Tensor& cache, Dim position, const AttentionOptions& options) {
  check(cache.defined() && cache.rank() == 5 && cache.shape()[2].is(2), "attend_cached: the cache must be [B, P, 2, H, D], got ", cache);
  const Dim H = cache.shape()[3], D = cache.shape()[4];
  check(qkv.defined() && qkv.rank() == 3 && require_equal(qkv.shape()[2], 3 * H * D), "attend_cached: qkv must be [B, n, ", 3 * H * D,
        "] (the cache is ", cache, "), got ", qkv);
  const Dim B = qkv.shape()[0], n = qkv.shape()[1];
  const bool single = B.is(1) && n.is(1);  // then q and kv lie in qkv as they are
  const Tensors parts = single ? split(reshape(qkv, {3, H, D}), {1, 2}, 0) : split(reshape(qkv, {B, n, 3, H, D}), {1, 2}, 2);
  cache_append(cache, reshape(parts[1], {B, n, 2, H, D}), position);
  return reshape(attention(reshape(parts[0], {B, n, H, D}), cache, {}, options)[0], {B, n, H * D});
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Spec &cache = in[0], &rows = in[1];
  check<DTypeError>(cache.dtype == rows.dtype, "cache_append: cache and rows must have one dtype, got ", cache, " and ", rows);
  bool fits = cache.shape.rank() >= 2 && cache.shape.rank() == rows.shape.rank();
  for (int i = 0; fits && i < cache.shape.rank(); ++i) fits = i == 1 || require_equal(cache.shape[i], rows.shape[i]);
  check(fits, "cache_append: cache must be [B, P, ...] and rows [B, T, ...] of the same other sizes, got ", cache, " and ", rows);
  require_range("cache_append", attrs.dim("position"), attrs.dim("position") + rows.shape[1], cache.shape[1]);
  return {};
}

const OpDef ops::cache_append = {"cache_append", infer, no_grad, saves(), saves(), {.mutates = saves(0)}};

}  // namespace plmcore
