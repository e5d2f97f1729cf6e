// One step of beam search. With v[b, k, t] = scores[b, k] + log softmax(logits[b K + k])[t], the n largest of
// each b in descending order; of equals the smaller k, then the smaller t, comes first. NaN comes after
// everything else. logits [B K, V]; scores [B, K], float32 (float64 for float64 logits) -> scores [B, n],
// beams and tokens int64 [B, n]
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensors beam_step(const Tensor& logits, const Tensor& scores, Dim n) {
  return dispatch(ops::beam_step, {logits, scores}, {{"n", n}});
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const Spec &logits = in[0], &scores = in[1];
  const DType dtype = float_dtype("beam_step", in, {0}), wide = sum_dtype(dtype);
  check<DTypeError>(scores.dtype == wide, "beam_step: scores must be ", wide, " for ", dtype, " logits, got ",
                    scores);
  check(logits.shape.rank() == 2 && scores.shape.rank() == 2 &&
            require_equal(logits.shape[0], scores.shape.numel()),
        "beam_step: logits must be [B * K, V] and scores [B, K], got ", logits, " and ", scores);
  const Dim n = attrs.dim("n"), candidates = scores.shape[1] * logits.shape[1];
  check<ValueError>(!n.known() || !candidates.known() || n.value() <= candidates.value(),
                    "beam_step: n must be at most the ", candidates, " candidates (K * V), got ", n);
  const Shape shape = {scores.shape[0], n};
  return {{shape, scores.dtype}, {shape, DType::int64}, {shape, DType::int64}};
}

// The best of each row: 16 bytes for each of min(n, V).
const OpDef ops::beam_step = {"beam_step", infer, no_grad, saves(), saves()};

}  // namespace plmcore
