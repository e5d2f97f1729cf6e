// min(1, max_norm / norm): one thread.
#include "device/kernel.h"

namespace plmcore::cuda {

namespace {
__global__ void clip_scale_of(const float* norm, float* scale, double max_norm) {
  const double r = max_norm / static_cast<double>(*norm);
  *scale = r > 1 ? 1.f : static_cast<float>(r);  // keeps a NaN
}
}  // namespace

PLM_KERNEL(clip_scale) {
  return problem(launch<clip_scale_of>(dim3(1), dim3(1), 0, stream_of(args), args.in[0].as<float>(),
                                       args.out[0].as<float>(), args.f("max_norm")));
}

}  // namespace plmcore::cuda
