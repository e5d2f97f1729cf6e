// Reads the rows that occur, writes them as float32.
#include "kernels/indices.h"
#include "kernels/row.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(embedding_quantized) {
  const View &weight = args.in[0], &ids = args.in[1];
  const int64_t V = weight.size[0], C = weight.size[1], n = ids.numel;
  const float* scale = args.has(2) ? args.in[2].as<float>() : nullptr;
  float* out = args.out[0].as<float>();
  for_index("embedding_quantized", ids.dtype, [&](auto type) {
    using I = typename decltype(type)::type;
    const I* id = ids.as<I>();
    check_indices<I>(ops::id_embedding_quantized, ids, V);
    for_rows(n, C, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        float* to = out + i * C;
        if (scale) {
          const int8_t* row = weight.as<int8_t>() + id[i] * C;
          for (int64_t c = 0; c < C; ++c) to[c] = static_cast<float>(row[c]) * scale[id[i]];
        } else {
          const bf16* row = weight.as<bf16>() + id[i] * C;
          for (int64_t c = 0; c < C; ++c) to[c] = to_float(row[c]);
        }
      }
    });
  });
}

}  // namespace plmcore::PLM_ISA
