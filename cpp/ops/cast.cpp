// y = x in another dtype. Floats round to nearest even; float to integer truncates; anything to bool is x !=
// 0.
#include "ops/op.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor cast(const Tensor& x, DType dtype) { return dispatch(ops::cast, {x}, {{"dtype", dtype}})[0]; }

Tensor Tensor::to(DType dtype) const { return dtype == this->dtype() ? *this : cast(*this, dtype); }

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(1);
  return {{in[0].shape, attrs.dtype("dtype")}};
}

static Tensors backward(const Grad& g) { return {cast(g.dy[0], g.in[0].dtype())}; }

const OpDef ops::cast = {"cast", infer, backward, saves(), saves()};

}  // namespace plmcore
