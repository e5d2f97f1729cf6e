// y[r, v] = 1 where v == ids[r], else 0. y is cleared, then a thread writes the one of its row.
#include "device/bits.h"
#include "device/fault.cuh"
#include "device/grid.h"

namespace plmcore::cuda {

template <class I, class T>
__global__ void __launch_bounds__(kThreads)
    one_hot_ones(const I* __restrict__ ids, T* __restrict__ y, int64_t rows, int64_t V, T one,
                 unsigned long long* bad_position) {
  for (int64_t r = first_of_thread(); r < rows; r += threads_of_grid()) {
    const I id = ids[r];
    if (within(id, V)) y[r * V + id] = one;
    else note_bad(bad_position, r);
  }
}

PLM_KERNEL(one_hot) {
  const View &ids = args.in[0], &y = args.out[0];
  const cudaStream_t stream = stream_of(args);
  if (ids.numel == 0) return nullptr;
  if (y.numel)
    if (const char* why =
            problem(cudaMemsetAsync(y.data, 0, static_cast<size_t>(y.numel) * size_of(y.dtype), stream)))
      return why;
  return for_index(ids.dtype, [&](auto index_type) {
    using I = typename decltype(index_type)::type;
    const char* why = for_bytes(y.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      return problem(launch<one_hot_ones<I, T>>(
          grid_for(ids.numel), dim3(kThreads), 0, stream, ids.as<I>(), y.as<T>(), ids.numel, y.last(),
          static_cast<T>(element_bits(1, y.dtype)), gpu_of(args).bad_position));
    });
    return why ? why : report_faults<I>(args, ops::id_one_hot, DataError::index, ids, y.last());
  });
}

}  // namespace plmcore::cuda
