// loss_i = -log softmax(logits_i)[labels_i], with the mean, the sum, or one number for each i.   logits [..., V]
//   labels int [...]: rows whose label is ignore_index give 0 and are not counted by the mean (none counted: NaN).
//   labels float [..., V]: loss_i = -sum_v labels_iv log p_iv.
// Label smoothing e, PyTorch's convention: (1 - e) nll + e mean_v(-log p_v). fairseq's (the target excluded): weight 1 - e on
// the target and e / (V - 1) on each other class.
// Saved for backward: log sum exp(logits_i) in two parts [...], the maximum and the logarithm; the gradient is computed from
// the logits in one pass.
// The half types give a float32 loss.
#include "ops/shape_rules.h"
#include "plmcore/ops.h"

namespace plmcore {

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& o) {
  check<ValueError>(o.label_smoothing >= 0 && o.label_smoothing <= 1, "cross_entropy: label_smoothing must be in [0, 1], got ",
                    o.label_smoothing);
  return dispatch(ops::cross_entropy, {logits, labels},
                  {{"ignore_index", o.ignore_index},
                   {"label_smoothing", o.label_smoothing},
                   {"excludes_target", o.smoothing_excludes_target},
                   {"reduction", o.reduction}})[0];
}

static Specs infer(const InSpecs& in, const Attrs& attrs) {
  const DType dtype = float_dtype("cross_entropy", in, {0});
  const Spec &logits = in[0], &labels = in[1];
  check(logits.shape.rank() >= 1, "cross_entropy: logits must be [..., V], got ", logits);
  const Shape rows = logits.shape.drop_last();
  if (is_index(labels.dtype))
    check(labels.shape.matches(rows), "cross_entropy: labels must be ", rows, " (logits without the last dim), got ", labels.shape,
          "; logits are ", logits.shape);
  else {
    check<DTypeError>(labels.dtype == dtype, "cross_entropy: labels must be int64, int32, or soft targets in the dtype of the logits, got ",
                      labels, "; logits are ", logits);
    check(labels.shape.matches(logits.shape), "cross_entropy: soft targets must have the shape of the logits ", logits.shape, ", got ",
          labels.shape);
    check<ValueError>(!attrs.flag("excludes_target"), "cross_entropy: fairseq's smoothing needs labels, not soft targets");
  }
  const DType wide = dtype == DType::float64 ? DType::float64 : DType::float32;
  const bool each = attrs.i("reduction") == CrossEntropyOptions::none;
  return {{each ? rows : Shape{}, wide}, {rows, wide}, {rows, wide}};
}

// The loss of each row, before they are added in order.
static Workspace workspace(const View* in, const View*, const Attrs&) {
  return {.shared = static_cast<size_t>(in[0].rows()) * (in[0].dtype == DType::float64 ? 8 : 4)};
}

static Tensors backward(const Grad& g) {
  Attrs attrs = g.attrs;
  attrs.push_back({"targets", g.want(1)});
  Tensors d = dispatch(ops::cross_entropy_grad, {g.in[0], g.in[1], g.out[1], g.out[2], g.dy[0]}, attrs);
  d.resize(2);
  return d;
}

const OpDef ops::cross_entropy = {"cross_entropy", infer, backward, saves(0, 1), saves(1, 2), {.workspace = workspace}};

// logits, labels, top, log_sum, dy -> dlogits, and dlabels of soft targets that want one
static Specs infer_grad(const InSpecs& in, const Attrs& attrs) {
  if (attrs.flag("targets")) return {in[0], in[1]};
  return {in[0]};
}

const OpDef ops::cross_entropy_grad = {"cross_entropy_grad", infer_grad, no_grad};

}  // namespace plmcore
