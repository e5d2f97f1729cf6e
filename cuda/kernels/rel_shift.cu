// y[r][j] = x[r][j + T - 1 - i] where that column exists, else 0; row r is query i = r % T. Backward moves
// the other way. A thread an element; reads and writes are runs of a row.
#include "device/axes.h"
#include "device/grid.h"
#include "device/kernel.h"

namespace plmcore::cuda {

template <class E, bool kBack>
__global__ void __launch_bounds__(kThreads)
    rel_shift_rows(const E* __restrict__ x, E* __restrict__ y, int64_t n, Divisor width, Divisor queries,
                   int64_t columns) {
  for (int64_t k = first_of_thread(); k < n; k += threads_of_grid()) {
    const uint32_t r = width.divide(static_cast<uint32_t>(k)), j = static_cast<uint32_t>(k) - r * width.size,
                   i = r - queries.divide(r) * queries.size;
    const int64_t moved = queries.size - 1 - i, from = kBack ? j - moved : j + moved;
    y[k] = from >= 0 && from < columns ? x[r * columns + from] : E(0);
  }
}

template <bool kBack>
static const char* shift(const KernelArgs& args) {
  const View &x = args.in[0], &y = args.out[0];
  if (y.numel == 0) return nullptr;
  if (y.numel >> 31) return "scores of 2^31 elements and more are not on this device yet";
  return for_bytes(y.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    return problem(launch<rel_shift_rows<E, kBack>>(grid_for(y.numel), dim3(kThreads), 0, stream_of(args),
                                                    x.as<E>(), y.as<E>(), y.numel, Divisor(y.last()),
                                                    Divisor(y.size[y.rank - 2]), x.last()));
  });
}

PLM_KERNEL(rel_shift) { return shift<false>(args); }
PLM_KERNEL(rel_shift_grad) { return shift<true>(args); }

}  // namespace plmcore::cuda
