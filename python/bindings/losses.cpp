#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_losses(nb::module_& m) {
  m.def(
      "cross_entropy",
      [](const Tensor& logits, const Tensor& labels, int64_t ignore_index, double label_smoothing,
         std::string_view smoothing, std::string_view reduction) {
        using R = CrossEntropyOptions::Reduction;
        check<ValueError>(smoothing == "pytorch" || smoothing == "fairseq",
                          "cross_entropy: smoothing must be 'pytorch' or 'fairseq', got '", smoothing, "'");
        check<ValueError>(reduction == "mean" || reduction == "sum" || reduction == "none",
                          "cross_entropy: reduction must be 'mean', 'sum' or 'none', got '", reduction, "'");
        R kind = R::none;
        if (reduction == "mean") kind = R::mean;
        if (reduction == "sum") kind = R::sum;
        return cross_entropy(logits, labels, {ignore_index, label_smoothing, smoothing == "fairseq", kind});
      },
      "logits"_a, "labels"_a, "ignore_index"_a = -100, "label_smoothing"_a = 0.0, "smoothing"_a = "pytorch",
      "reduction"_a = "mean", NoGil(),
      "-log softmax(logits)[labels], mean over the labels that are not ignore_index. logits [..., V]; labels "
      "int [...] or soft targets float [..., V].");
}

}  // namespace plmcore::bindings
