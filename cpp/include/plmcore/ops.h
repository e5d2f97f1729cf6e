// Every op as a function. Shapes: B batch, T query length, S key length, C width, H heads, D head width, V
// vocabulary, N rows. Tensors are contiguous; results are new unless said otherwise. The file
// cpp/ops/NAME.cpp has the maths.
#pragma once

#include <map>
#include <string>

#include "plmcore/tensor.h"

namespace plmcore {

// The numbers are part of the program file format.
enum class Activation : int { none, relu, gelu, gelu_tanh, tanh, sigmoid, silu };
constexpr int kActivations = 7;
Activation activation_from_name(
    std::string_view name);  // "none", "relu", "gelu", "gelu_tanh", ...; ValueError lists them
Tensor activate(const Tensor& x, Activation activation);  // the op that the activation names

// ---- making ----
Tensor full(const Shape& shape, double value, DType dtype, Device* device = nullptr);
Tensor arange(Dim start, Dim stop, DType dtype, Device* device = nullptr);
Tensor one_hot(const Tensor& ids, Dim V, DType dtype);               // [...] -> [..., V]
Tensor cast(const Tensor& x, DType dtype);
Tensor copy(const Tensor& x);                                        // new memory
Tensor uniform(const Shape& shape, double low, double high, DType dtype, Device* device = nullptr);
Tensor normal(const Shape& shape, double mean, double std, DType dtype, Device* device = nullptr);

// ---- arithmetic; shapes broadcast as in NumPy ----
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor affine(const Tensor& x, double scale, double shift);          // x * scale + shift
Tensor equal(const Tensor& a, const Tensor& b);                      // -> bool, and so the next ones
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& a);
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
Tensor sum_to(const Tensor& x, const Shape& shape);                  // the reverse of broadcasting
Tensor broadcast_to(const Tensor& x, const Shape& shape);

// ---- functions of one element ----
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor gelu(const Tensor& x, bool tanh_form = false);
Tensor silu(const Tensor& x);

// ---- reductions; axes: empty means all ----
using Axes = SmallVector<int, 8>;
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
Tensor max(const Tensor& x, int axis, bool keepdims = false);  // the gradient goes to the first maximum
Tensor min(const Tensor& x, int axis, bool keepdims = false);
Tensor argmax(const Tensor& x, int axis, bool keepdims = false);  // int64, the first of equals
Tensor cumsum(const Tensor& x, int axis);
Tensors topk(const Tensor& x, Dim k);  // last axis; values and int64 indices, descending
Tensor softmax(const Tensor& x);  // last axis
Tensor log_softmax(const Tensor& x);

// ---- products ----
// op(a) op(b) over the last two axes, leading axes broadcast; the flags transpose the last two axes.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
// activation(x W^T + bias).  x [..., K]; weight [N, K]; bias [N] or undefined
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
              Activation activation = Activation::none);
// For inference: W [N, K] in the layout of the inner loop, float32, and the product with it. No gradient.
Tensor pack_weight(const Tensor& weight);
Tensor linear_packed(const Tensor& x, const Tensor& packed, const Tensor& bias, Dim N,
                     Activation activation = Activation::none);
// For inference: a weight int8 [N, K] with a scale for each row, or bfloat16 [N, K] with `scale` undefined;
// x, y and bias float32. No gradient. bits: of x's rounded values beside an int8 weight, 13 or 8.
Tensor linear_quantized(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias,
                        Activation activation = Activation::none, int bits = 13);

// ---- shape ----
using Dims = SmallVector<Dim, 8>;
Tensor reshape(const Tensor& x, const Shape& shape);  // shares memory
Tensor narrow(const Tensor& x, Dim start, Dim length);  // rows of the first axis; shares memory
Tensor transpose(const Tensor& x, const Axes& order);  // a permutation of the axes
Tensor concat(const Tensors& list, int axis);
Tensors split(const Tensor& x, const Dims& sizes, int axis);  // along the first axis they share memory
// Of the range [start, stop); a negative step begins at its end.
Tensor slice(const Tensor& x, int axis, Dim start, Dim stop, int64_t step = 1);
Tensor pad(const Tensor& x, const Shape& before, const Shape& after, double value = 0);
Tensor gather(const Tensor& x, const Tensor& index, int axis);  // like take_along_axis
Tensor index_select(const Tensor& x, const Tensor& index, int axis);  // whole slices; index of any shape
Tensor scatter_add(const Tensor& x, const Tensor& index,
                   const Tensor& updates);  // rows of the first axis; repeats add up

// ---- embedding and row-sparse gradients ----
Tensor embedding(const Tensor& weight, const Tensor& ids, bool sparse = false);  // [V, C], [...] -> [..., C]
Tensor embedding_quantized(const Tensor& weight, const Tensor& ids,
                           const Tensor& scale);  // weight as of linear_quantized
Tensor merge_rows(const Tensor& a, const Tensor& b);  // the sum of two row-sparse tensors
Tensor add_rows(const Tensor& dense, const Tensor& sparse);  // dense + sparse
Tensor to_dense(const Tensor& sparse);

// ---- normalisation over the last axis ----
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps);
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps);
// s = x + residual (+ bias); y = layer_norm(s). Returns y and s.
Tensors residual_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gamma, const Tensor& beta,
                            double eps);

// ---- dropout ----
// Element by element; locked: one mask over all positions of axis 1 of [B, T, C].
Tensor dropout(const Tensor& x, double p, bool locked = false);

// ---- attention ----
struct AttentionOptions {
  Tensor lengths;  // int64 or int32 [B]: keys from here on are padding
  Tensor mask;  // bool [B|1, H|1, T|1, S]: true may be attended
  Tensor bias;  // float [B|1, H|1, T, S], added to the scores; has a gradient
  Tensor
      offsets;  // int64 or int32 [B+1]: q, k, v hold rows of B sequences one after the other, no batch axis
  bool causal = false;  // query i sees keys up to its own position, S - T + i
  int64_t band = 0;  // with causal: only the last `band` of these; 0 is no limit
  // With causal: each stride-th key back from its own, beside the band if there is one; 0 is off.
  int64_t stride = 0;
  Tensor prefix;  // int64 or int32 [B]: with causal, keys before this are visible to all
  Tensor start;  // int64 or int32 [B]: with causal, the position of query 0 (of a cache with room beyond it)
  double scale = -1;  // of the scores; negative: 1 / sqrt(D)
  double dropout = 0;
  bool weights = false;  // also return the weights [B, H, T, S], after softmax and dropout
};
// q [B, T, H, D]; k, v [B, S, H, D] -> [B, T, H, D].  Packed: q = qkv [B, T, 3, H, D], k and v undefined; or
// k = kv [B, S, 2, H, D], v undefined. With offsets mask and bias cover at least the longest sequence. A row
// that may see nothing gives 0. Returns the output, then the weights if asked.
Tensors attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);
// Moves row i of [..., T, L] left by T - 1 - i and keeps S columns: distances to keys (Transformer-XL,
// XLNet).
Tensor rel_shift(const Tensor& x, Dim S);

// ---- recurrent networks and convolutions ----
// One layer in one direction over whole sequences. x [B, T, gates H]: the gates' sums from the input, biases
// included; weight [gates H, P]; the state before the first step h [B, P], c [B, H]. lengths [B]: the steps
// of each sequence; y is 0 behind them. reverse: from each sequence's last step to its first.
struct LstmOptions {
  Tensor projection;  // [P, H]: h = W_p (o tanh c); P = H without
  Tensor lengths;  // int64 or int32 [B]
  bool reverse = false;
  double cell_clip = 0, projection_clip = 0;  // 0: none
};
// Gates i, f, g, o -> y [B, T, P], h [B, P] and c [B, H] after the last step.
Tensors lstm(const Tensor& x, const Tensor& weight, const Tensor& h, const Tensor& c,
             const LstmOptions& options);
// Gates r, z, n -> y [B, T, H], h [B, H]. bias [H] or none: of the recurrent part of n, inside of r's
// product.
Tensors gru(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& h, const Tensor& lengths,
            bool reverse = false);
// activation: tanh or relu -> y [B, T, H], h [B, H]
Tensors rnn(const Tensor& x, const Tensor& weight, const Tensor& h, const Tensor& lengths,
            bool reverse = false, Activation activation = Activation::tanh);
// y[b, t] = sum over w of weight[:, :, w] x[b, t + w - padding] + bias; x is 0 outside.  x [B, T, C]; weight
// [O, C, W]; bias [O] or none -> [B, T + 2 padding - W + 1, O]
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t padding = 0);

// ---- rows without padding ----
// mask bool [B, T] -> the rows of x [B, T, ...] where it is true, [N, ...], and their numbers int64 [N] in b
// * T + t.
Tensors pack_rows(const Tensor& x, const Tensor& mask);
Tensor unpack_rows(const Tensor& rows, const Tensor& index, Dim B, Dim T);  // zeros elsewhere
// The rows of x [B, T, C] and of labels [B, T] where the label is not `ignore_index`: x [N, C], labels [N],
// index [N].
Tensors select_labelled(const Tensor& x, const Tensor& labels, int64_t ignore_index = -100);

// ---- losses ----
struct CrossEntropyOptions {
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  bool smoothing_excludes_target = false;  // fairseq's convention; false: PyTorch's
  enum Reduction : int { mean, sum, none } reduction = mean;
};
// logits [..., V]; labels int [...], or float [..., V] soft targets.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options);

// ---- generation ----
// One step of beam search: scores [B, K] + log_softmax(logits [B*K, V]), the best n of each row of the batch.
// Returns scores [B, n], beams int64 [B, n], tokens int64 [B, n].
Tensors beam_step(const Tensor& logits, const Tensor& scores, Dim n);
Tensor gather_beams(const Tensor& x, const Tensor& beams);  // x [B, K, ...], beams [B, n] -> [B, n, ...]
// Writes rows [B, T, ...] into cache [B, P, ...] at `position`, in place.
void cache_append(const Tensor& cache, const Tensor& rows, Dim position);

// ---- optimisers, in place ----
// Options by name, such as {{"lr", 0.1}, {"nesterov", true}}. What is left out has the default of the
// optimiser, which cpp/ops/x_step.cpp defines. `scale`, float32 [], multiplies the gradient (clipping).
using StepOptions = std::map<std::string, double>;
void sgd_step(const Tensor& param, const Tensor& grad, const Tensor& velocity, const StepOptions& options,
              const Tensor& scale = {});
void adam_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
               const StepOptions& options, const Tensor& scale = {});
void adamw_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                const StepOptions& options, const Tensor& scale = {});
void bert_adam_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                    const StepOptions& options, const Tensor& scale = {});
void lamb_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
               const StepOptions& options, const Tensor& scale = {});
void adafactor_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                    const StepOptions& options, const Tensor& scale = {});
void adadelta_step(const Tensor& param, const Tensor& grad, const Tensor& m, const Tensor& v,
                   const StepOptions& options, const Tensor& scale = {});
void adagrad_step(const Tensor& param, const Tensor& grad, const Tensor& v, const StepOptions& options,
                  const Tensor& scale = {});
void ema_step(const Tensor& average, const Tensor& param, double decay);
Tensor global_norm(const Tensors& list);  // float32 []
Tensor clip_scale(const Tensor& norm, double max_norm);  // float32 []: min(1, max_norm / norm)

}  // namespace plmcore
