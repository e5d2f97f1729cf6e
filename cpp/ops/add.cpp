// y = a + b, broadcasting.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor add(const Tensor& a, const Tensor& b) { return dispatch(ops::add, {a, b})[0]; }

static Specs infer(const InSpecs& in, const Attrs&) { return arithmetic_rule("add", in); }

static Tensors backward(const Grad& g) {
  return {unbroadcast(g.dy[0], g.in[0]), unbroadcast(g.dy[0], g.in[1])};
}

const OpDef ops::add = {"add", infer, backward, saves(), saves()};

}  // namespace plmcore
