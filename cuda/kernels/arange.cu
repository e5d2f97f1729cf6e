// y[i] = start + i; a thread an element.
#include <type_traits>

#include "device/grid.h"
#include "device/kernel.h"

namespace plmcore::cuda {

template <class T>
__global__ void __launch_bounds__(kThreads) arange_count(T* y, int64_t n, int64_t start) {
  for (int64_t i = first_of_thread(); i < n; i += threads_of_grid()) {
    if constexpr (std::is_integral_v<T>) y[i] = static_cast<T>(start + i);
    else y[i] = narrow<T>(static_cast<Acc<T>>(start + i));
  }
}

PLM_KERNEL(arange) {
  const View& y = args.out[0];
  if (y.numel == 0) return nullptr;
  return for_any(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return problem(launch<arange_count<T>>(grid_for(y.numel), dim3(kThreads), 0, stream_of(args), y.as<T>(),
                                           y.numel, args.dim("start")));
  });
}

}  // namespace plmcore::cuda
