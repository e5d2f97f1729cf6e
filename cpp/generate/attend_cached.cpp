#include "ops/shape_rules.h"
#include "plmcore/generate.h"

namespace plmcore {

Tensor attend_cached(const Tensor& qkv, const Tensor& cache, Dim position, const AttentionOptions& options) {
  check(cache.defined() && cache.rank() == 5 && cache.shape()[2].is(2),
        "attend_cached: the cache must be [B, P, 2, H, D], got ", cache);
  const Dim H = cache.shape()[3], D = cache.shape()[4];
  check(qkv.defined() && qkv.rank() == 3 && require_equal(qkv.shape()[2], 3 * H * D),
        "attend_cached: qkv must be [B, n, ", 3 * H * D, "] (the cache is ", cache, "), got ", qkv);
  const Dim B = qkv.shape()[0], n = qkv.shape()[1];
  const bool single = B.is(1) && n.is(1);  // then q and kv lie in qkv as they are
  const Tensors parts =
      single ? split(reshape(qkv, {3, H, D}), {1, 2}, 0) : split(reshape(qkv, {B, n, 3, H, D}), {1, 2}, 2);
  cache_append(cache, reshape(parts[1], {B, n, 2, H, D}), position);
  return reshape(attention(reshape(parts[0], {B, n, H, D}), cache, {}, options)[0], {B, n, H * D});
}

}  // namespace plmcore
