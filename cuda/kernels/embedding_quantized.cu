// y[i] = weight[ids[i]], times scale[ids[i]] where there is one.   weight int8 [V, C] with scale float32 [V],
// or bfloat16 [V, C]; ids [n]; y float32 [n, C].   A thread takes four elements of a row: one read of the
// rows that occur, one write of y.
#include "device/axes.h"
#include "device/fault.cuh"
#include "device/grid.h"

namespace plmcore::cuda {

namespace {

template <class W, class I, int V>
__global__ void __launch_bounds__(kThreads)
    embedding_quantized_rows(const W* __restrict__ weight, const I* __restrict__ ids,
                             const float* __restrict__ scale, float* __restrict__ y, int64_t packs,
                             int64_t rows, Divisor width, unsigned long long* bad_position) {
  for (int64_t p = first_of_thread(); p < packs; p += threads_of_grid()) {
    const uint32_t i = width.divide(static_cast<uint32_t>(p)), c = static_cast<uint32_t>(p) - i * width.size;
    const I id = ids[i];
    Pack<float, V> to = {};
    if (within(id, rows)) {
      const auto from =
          *reinterpret_cast<const Pack<W, V>*>(weight + (static_cast<int64_t>(id) * width.size + c) * V);
      const float times = scale ? scale[id] : 1.f;
#pragma unroll
      for (int j = 0; j < V; ++j) to.at[j] = static_cast<float>(widen(from.at[j])) * times;
    } else note_bad(bad_position, i);
    *reinterpret_cast<Pack<float, V>*>(y + p * V) = to;
  }
}

}  // namespace

PLM_KERNEL(embedding_quantized) {
  const View &weight = args.in[0], &ids = args.in[1], &y = args.out[0];
  const int64_t C = weight.size[1];
  const float* scale = args.has(2) ? args.in[2].as<float>() : nullptr;
  if (y.numel == 0) return nullptr;
  if (y.numel >> 31) return "2^31 elements and more are not on this device yet";
  return for_index(ids.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    const auto go = [&]<class W, int V>(Type<W>, Constant<V>) {
      return problem(launch<embedding_quantized_rows<W, I, V>>(
          grid_for(y.numel / V), dim3(kThreads), 0, stream_of(args), weight.as<W>(), ids.as<I>(), scale,
          y.as<float>(), y.numel / V, weight.size[0], Divisor(C / V), gpu_of(args).bad_position));
    };
    const auto by_width = [&]<class W>(Type<W> type) {
      return C % 4 == 0 && aligned(weight.as<W>(), y.as<float>()) ? go(type, Constant<4>{})
                                                                  : go(type, Constant<1>{});
    };
    const char* why = scale ? by_width(Type<int8_t>{}) : by_width(Type<bf16>{});
    return why ? why
               : report_faults<I>(args, ops::id_embedding_quantized, DataError::index, ids, weight.size[0]);
  });
}

}  // namespace plmcore::cuda
