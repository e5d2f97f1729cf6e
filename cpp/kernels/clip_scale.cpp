#include "kernels/kernel.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(clip_scale) {
  const double r = args.f("max_norm") / static_cast<double>(*args.in[0].as<float>());
  *args.out[0].as<float>() = r > 1 ? 1.f : static_cast<float>(r);  // keeps a NaN
}

}  // namespace plmcore::PLM_ISA
