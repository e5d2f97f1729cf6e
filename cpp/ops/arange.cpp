// start, start + 1, ..., stop - 1.   -> [stop - start]
#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor arange(Dim start, Dim stop, DType dtype, Device* device) {
  return dispatch(ops::arange, {}, {{"start", start}, {"stop", stop}, {"dtype", dtype}}, device)[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(0);
  const Dim start = attrs.dim("start"), stop = attrs.dim("stop");
  const DType dtype = attrs.dtype("dtype");
  check<DTypeError>(dtype != DType::boolean, "arange: not defined on bool");
  check<ValueError>(!start.known() || !stop.known() || start.value() <= stop.value(),
                    "arange: start must not be above stop, got ", start, " and ", stop);
  return {{{stop - start}, dtype}};
}

const OpDef ops::arange = {"arange", infer, no_grad};

}  // namespace plmcore
