// loss_i = -log softmax(logits_i)[labels_i]: the mean, the sum, or one number for each i.   logits [..., V]
//   labels int [...]: rows of label ignore_index give 0 and are not counted by the mean (none counted: NaN).
//   labels float [..., V]: loss_i = -sum_v labels_iv log p_iv.
// Label smoothing e, PyTorch's convention: (1 - e) nll + e mean_v(-log p_v). fairseq's (the target excluded):
// weight 1 - e on the target and e / (V - 1) on each other class. Saved for backward: log sum exp(logits_i)
// in two parts [...], the maximum and the logarithm; the gradient is computed from the logits in one pass.
// The half types give a float32 loss.
#include <utility>

#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& o) {
  return dispatch(ops::cross_entropy, {logits, labels},
                  {{"ignore_index", o.ignore_index},
                   {"label_smoothing", o.label_smoothing},
                   {"excludes_target", o.smoothing_excludes_target},
                   {"reduction", o.reduction}})[0];
}

// Logits, labels and attributes fit. The specs of the loss and of a number for each row.
static std::pair<Spec, Spec> check_loss(const char* op, const InSpecs& in, const Attrs& attrs) {
  const DType dtype = float_dtype(op, in, {0});
  const Spec &logits = in[0], &labels = in[1];
  check(logits.shape.rank() >= 1, op, ": logits must be [..., V], got ", logits);
  const Shape rows = logits.shape.drop_last();
  if (is_index(labels.dtype))
    check(labels.shape.matches(rows), op, ": labels must be ", rows, " (logits without the last dim), got ",
          labels.shape, "; logits are ", logits.shape);
  else {
    check<DTypeError>(labels.dtype == dtype, op,
                      ": labels must be int64, int32, or soft targets in the dtype of the logits, got ",
                      labels, "; logits are ", logits);
    check(labels.shape.matches(logits.shape), op, ": soft targets must have the shape of the logits ",
          logits.shape, ", got ", labels.shape);
    check<ValueError>(!attrs.flag("excludes_target"), op,
                      ": fairseq's smoothing needs labels, not soft targets");
  }
  const double smoothing = attrs.f("label_smoothing");
  check<ValueError>(smoothing >= 0 && smoothing <= 1, op, ": label_smoothing must be in [0, 1], got ",
                    smoothing);
  attrs.flag("excludes_target");
  attrs.i("ignore_index");
  const bool each = attrs.code("reduction", 3) == CrossEntropyOptions::none;
  return {{each ? rows : Shape{}, sum_dtype(dtype)}, {rows, sum_dtype(dtype)}};
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  in.expect(2);
  const auto [loss, row] = check_loss("cross_entropy", in, attrs);
  return {loss, row, row};
}

// The loss of each row, before they are added in order.
static Tensors backward(const Grad& g) {
  AttrList attrs = g.attrs;
  attrs.push_back({"targets", g.want(1)});
  Tensors d = dispatch(ops::cross_entropy_grad, {g.in[0], g.in[1], g.out[1], g.out[2], g.dy[0]}, attrs);
  d.resize(2);
  return d;
}

const OpDef ops::cross_entropy = {
    "cross_entropy",
    infer,
    backward,
    saves(0, 1),
    saves(1, 2),
    {.exact_in = saves(0, 1), .exact_out = saves(1, 2), .meets = can_meet(DataError::label)}};

// logits, labels, top, log_sum, dy -> dlogits, and dlabels of soft targets that want one
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  in.expect(5);
  const auto [loss, row] = check_loss("cross_entropy_grad", in, attrs);
  require_spec("cross_entropy_grad", "the maximum", in[2], row);
  require_spec("cross_entropy_grad", "the logarithm", in[3], row);
  require_spec("cross_entropy_grad", "dy", in[4], loss);
  check<ValueError>(!attrs.flag("targets") || is_float(in[1].dtype),
                    "cross_entropy_grad: only soft targets have a gradient, got ", in[1]);
  if (attrs.flag("targets")) return {in[0], in[1]};
  return {in[0]};
}

const OpDef ops::cross_entropy_grad = {
    "cross_entropy_grad", infer_grad, no_grad, saves(), saves(), {.meets = can_meet(DataError::label)}};

}  // namespace plmcore
