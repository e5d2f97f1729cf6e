// y = activation(x W^T + bias) with W laid out once for the product's inner loop: for inference.   x [..., K]
// -> [..., N] The layout of a packed weight is the running processor's own: it stays in memory and is never
// written to a file.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

static constexpr int64_t kRound = 64;  // a multiple of every instruction set's panel

Tensor pack_weight(const Tensor& weight) { return dispatch(ops::pack_weight, {weight})[0]; }

Tensor linear_packed(const Tensor& x, const Tensor& packed, const Tensor& bias, Dim N,
                     Activation activation) {
  return dispatch(ops::linear_packed, {x, packed, bias}, {{"N", N}, {"activation", activation}})[0];
}

static Specs infer_pack(const InSpecs& in, const Attrs&) {
  in.expect(1);
  check<DTypeError>(in[0].dtype == DType::float32, "pack_weight: weight must be float32, got ", in[0]);
  check(in[0].shape.rank() == 2, "pack_weight: weight must be [N, K], got ", in[0]);
  const int64_t N = in[0].shape[0].value();
  return {{{(N + kRound - 1) / kRound * kRound, in[0].shape[1]}, DType::float32}};
}

const OpDef ops::pack_weight = {"pack_weight", infer_pack, no_grad};

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(3);
  attrs.code("activation", kActivations);
  const Spec &x = in[0], &w = in[1];
  check<DTypeError>(x.dtype == DType::float32 && w.dtype == DType::float32,
                    "linear_packed: x and the packed weight must be float32, got ", x, " and ", w);
  const Dim N = attrs.dim("N");
  check(w.shape.rank() == 2 && (N.value() + kRound - 1) / kRound * kRound == w.shape[0].value(),
        "linear_packed: the packed weight ", w, " does not hold ", N, " rows");
  check(x.shape.rank() >= 1 && require_equal(x.shape.back(), w.shape[1]),
        "linear_packed: the last axis of x must be ", w.shape[1], ", got ", x.shape);
  if (in.has(2)) require_spec("linear_packed", "bias", in[2], {{N}, DType::float32});
  return {{x.shape.with_last(N), x.dtype}};
}

const OpDef ops::linear_packed = {"linear_packed", infer, no_grad, saves(), saves()};

}  // namespace plmcore
