// One read and one write forward, two reads and one write backward; the functions are in math.h.
#include "kernels/elementwise.h"

namespace plmcore::PLM_ISA {

PLM_KERNEL(gelu) {
  if (args.i("tanh_form"))
    map1("gelu", args, [](auto x) __attribute__((always_inline)) { return gelu_tanh(x); });
  else map1("gelu", args, [](auto x) __attribute__((always_inline)) { return gelu(x); });
}

PLM_KERNEL(gelu_grad) {
  if (args.i("tanh_form"))
    map2("gelu_grad", args,
         [](auto x, auto dy) __attribute__((always_inline)) { return dy * gelu_tanh_slope(x); });
  else
    map2("gelu_grad", args,
         [](auto x, auto dy) __attribute__((always_inline)) { return dy * gelu_slope(x); });
}

}  // namespace plmcore::PLM_ISA
