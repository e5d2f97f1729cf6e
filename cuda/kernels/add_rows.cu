// y = dense, y[rows[k]] += values[k].
#include "device/row_sparse.cuh"

namespace plmcore::cuda {

PLM_KERNEL(add_rows) {
  const View &dense = args.in[0], &y = args.out[0];
  if (y.numel)
    if (const char* why =
            problem(cudaMemcpyAsync(y.data, dense.data, static_cast<size_t>(y.numel) * size_of(y.dtype),
                                    cudaMemcpyDeviceToDevice, stream_of(args))))
      return why;
  return for_float(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return place_rows<T, true>(args, ops::id_add_rows, args.in[1], args.in[2], y, y.size[0], y.inner(0));
  });
}

}  // namespace plmcore::cuda
