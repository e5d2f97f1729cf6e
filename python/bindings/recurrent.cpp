#include "bindings/bindings.h"

namespace plmcore::bindings {

void bind_recurrent(nb::module_& m) {
  m.def(
      "lstm",
      [](const Tensor& x, const Tensor& weight, const Tensor& h, const Tensor& c, Optional projection,
         Optional lengths, bool reverse, double cell_clip, double projection_clip) {
        return lstm(x, weight, h, c, {projection, lengths, reverse, cell_clip, projection_clip});
      },
      "x"_a, "weight"_a, "h"_a, "c"_a, "projection"_a = nb::none(), "lengths"_a = nb::none(),
      "reverse"_a = false, "cell_clip"_a = 0.0, "projection_clip"_a = 0.0, NoGil(),
      "i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of x_t + h W^T; c = f c + i g; h = o tanh c, or (o tanh "
      "c) W_p^T.\n"
      "x [B, T, 4 H], the part of the input with its biases; weight [4 H, P]; h [B, P]; c [B, H]; projection "
      "[P, H]\n"
      "-> y [B, T, P], and h and c after the last step. lengths [B]: y is 0 behind them. reverse: each "
      "sequence from its end.\n"
      "cell_clip, projection_clip: bounds of c and of h; 0: none.");
  m.def(
      "gru",
      [](const Tensor& x, const Tensor& weight, Optional bias, const Tensor& h, Optional lengths,
         bool reverse) { return gru(x, weight, bias, h, lengths, reverse); },
      "x"_a, "weight"_a, "bias"_a.none(), "h"_a, "lengths"_a = nb::none(), "reverse"_a = false, NoGil(),
      "r, z = sigmoid of x_t + h W^T; n = tanh(x_t + r (h W_n^T + bias)); h = (1 - z) n + z h.\n"
      "x [B, T, 3 H]; weight [3 H, H]; bias [H] or None; h [B, H] -> y [B, T, H], and h after the last step. "
      "lengths, reverse: see lstm.");
  m.def(
      "rnn",
      [](const Tensor& x, const Tensor& weight, const Tensor& h, Optional lengths, bool reverse,
         std::string_view activation) {
        return rnn(x, weight, h, lengths, reverse, activation_from_name(activation));
      },
      "x"_a, "weight"_a, "h"_a, "lengths"_a = nb::none(), "reverse"_a = false, "activation"_a = "tanh",
      NoGil(),
      "h = activation(x_t + h W^T), tanh or relu. x [B, T, H]; weight [H, H]; h [B, H] -> y [B, T, H], and h "
      "after the last step. lengths, reverse: see lstm.");
  m.def(
      "conv1d",
      [](const Tensor& x, const Tensor& weight, Optional bias, int64_t padding) {
        return conv1d(x, weight, bias, padding);
      },
      "x"_a, "weight"_a, "bias"_a = nb::none(), "padding"_a = 0, NoGil(),
      "y[b, t] = sum over w of weight[:, :, w] x[b, t + w - padding] + bias; x is 0 outside. x [B, T, C]; "
      "weight [O, C, W]; bias [O] -> [B, T + 2 padding - W + 1, O].");
}

}  // namespace plmcore::bindings
