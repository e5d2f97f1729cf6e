// y[b, t] = sum over w of weight[:, :, w] x[b, t + w - padding] + bias; x is 0 outside.
//   x [B, L, C]; weight [O, C, W]; bias [O] or none -> [B, M, O]
// The windows of x, [B M, W C], are written out and multiplied by the weight as [O, W C]: one product by
// cuBLASLt. ConvBackward: dx is the same sum over dy with the weight turned around, [C, W O]; the weight's
// gradient is one product of dy and the windows. Traffic: W times x for the windows.
#include "device/axes.h"
#include "device/column_sums.cuh"
#include "device/finish.cuh"
#include "device/grid.h"
#include "device/parts.h"
#include "runtime/matmul.h"

namespace plmcore::cuda {

namespace {

// to[b, t, w, c] = x[b, t + w - padding, c], or 0; a thread an element.
template <class T>
__global__ void __launch_bounds__(kThreads)
    conv_windows(const T* __restrict__ x, T* __restrict__ to, int64_t n, Divisor width, Divisor windows,
                 Divisor steps, int64_t length, int64_t padding) {
  for (int64_t i = first_of_thread(); i < n; i += threads_of_grid()) {
    const uint32_t rest = width.divide(static_cast<uint32_t>(i)),
                   c = static_cast<uint32_t>(i) - rest * width.size, place = windows.divide(rest),
                   w = rest - place * windows.size, b = steps.divide(place), t = place - b * steps.size;
    const int64_t at = static_cast<int64_t>(t) + w - padding;
    to[i] = at >= 0 && at < length ? x[(b * length + at) * width.size + c] : T{};
  }
}
// to[i, k, j] = from[j * of_j + k * of_k + i * of_i], k from the end where `turned`; a thread an element.
template <class T>
__global__ void __launch_bounds__(kThreads)
    conv_weight(const T* __restrict__ from, T* __restrict__ to, int64_t n, Divisor inner, Divisor middle,
                int64_t of_i, int64_t of_k, int64_t of_j, bool turned) {
  for (int64_t at = first_of_thread(); at < n; at += threads_of_grid()) {
    const uint32_t rest = inner.divide(static_cast<uint32_t>(at)),
                   j = static_cast<uint32_t>(at) - rest * inner.size, i = middle.divide(rest),
                   k = rest - i * middle.size;
    to[at] = from[j * of_j + (turned ? middle.size - 1 - k : k) * of_k + i * of_i];
  }
}

// The windows of x [B, L, C]: M of each text, K = W C wide.
template <class T>
struct Windows {
  int64_t B, L, C, W, padding, M, K;
  T* written;

  Windows(int64_t b, int64_t length, int64_t width, int64_t w, int64_t around, Parts& parts)
      : B(b), L(length), C(width), W(w), padding(around), M(length + 2 * around - w + 1), K(w * width) {
    written = parts.take<T>(B * M * K);
  }
  const char* write(const KernelArgs& args, const T* x) const {
    const int64_t n = B * M * K;
    if (n == 0) return nullptr;
    if (n >> 31) return "windows of 2^31 elements and more are not on this device yet";
    return problem(launch<conv_windows<T>>(grid_for(n), dim3(kThreads), 0, stream_of(args), x, written, n,
                                           Divisor(C), Divisor(W), Divisor(M), L, padding));
  }
};
// to [I, W, J]
template <class T>
const char* lay_out(const KernelArgs& args, const T* from, T* to, int64_t I, int64_t W, int64_t J,
                    int64_t of_i, int64_t of_k, int64_t of_j, bool turned) {
  const int64_t n = I * W * J;
  if (n == 0) return nullptr;
  if (n >> 31) return "weights of 2^31 elements and more are not on this device yet";
  return problem(launch<conv_weight<T>>(grid_for(n), dim3(kThreads), 0, stream_of(args), from, to, n,
                                        Divisor(J), Divisor(W), of_i, of_k, of_j, turned));
}

template <class T>
struct ConvForward {
  const KernelArgs& args;
  int64_t O, C, W;
  Parts parts;
  Windows<T> windows;
  T* weight;

  ConvForward(const KernelArgs& a, char* base)
      : args(a),
        O(a.in[1].size[0]),
        C(a.in[1].size[1]),
        W(a.in[1].size[2]),
        parts{base},
        windows(a.in[0].size[0], a.in[0].size[1], C, W, a.i("padding"), parts),
        weight(parts.take<T>(O * W * C)) {}

  const char* run() {
    const View& y = args.out[0];
    const T* bias = args.has(2) ? args.in[2].as<T>() : nullptr;
    const int64_t rows = windows.B * windows.M;
    if (y.numel == 0) return nullptr;
    if (const char* why = windows.write(args, args.in[0].as<T>())) return why;
    if (const char* why = lay_out(args, args.in[1].as<T>(), weight, O, W, C, C * W, 1, W, false)) return why;
    const Product p{.transpose_b = true,
                    .M = rows,
                    .N = O,
                    .K = windows.K,
                    .dtype = y.dtype,
                    .a = windows.written,
                    .b = weight,
                    .out = y.data};
    if (const char* why = multiply(p, stream_of(args))) return why;
    if (!bias) return nullptr;
    return problem(
        launch_finish<T>(y.as<T>(), bias, nullptr, y.as<T>(), rows, O, Activation::none, stream_of(args)));
  }
};

// part [chunks][O]
template <class T>
__global__ void __launch_bounds__(kColumns* kRowLanes)
    conv_bias_columns(const T* __restrict__ dy, int64_t rows, int64_t O, Acc<T>* __restrict__ part) {
  chunk_column_sums<1>(rows, O, part, [&](int64_t r, int64_t column, Acc<T>(&values)[1]) {
    values[0] = widen(dy[r * O + column]);
  });
}

template <class T>
struct ConvBackward {
  const KernelArgs& args;
  int64_t O, C, W, B, M;
  Parts parts;
  Windows<T> to_x, windows;
  T *weight, *dw;
  Acc<T>* part;

  ConvBackward(const KernelArgs& a, char* base)
      : args(a),
        O(a.in[1].size[0]),
        C(a.in[1].size[1]),
        W(a.in[1].size[2]),
        B(a.in[2].size[0]),
        M(a.in[2].size[1]),
        parts{base},
        to_x(B, M, O, W, W - 1 - a.i("padding"), parts),
        windows(B, a.in[0].size[1], C, W, a.i("padding"), parts),
        weight(parts.take<T>(O * W * C)),
        dw(parts.take<T>(O * W * C)),
        part(parts.take<Acc<T>>(row_chunks(B * M) * O)) {}

  const char* run() {
    const T *w = args.in[1].as<T>(), *dy = args.in[2].as<T>();
    const DType dtype = args.in[0].dtype;
    const cudaStream_t stream = stream_of(args);
    const int64_t K = W * C, rows = B * M, chunks = row_chunks(rows);
    if (const char* why = lay_out(args, w, weight, C, W, O, W, 1, C * W, true)) return why;
    if (const char* why = to_x.write(args, dy)) return why;
    const Product dx{.transpose_b = true,
                     .M = B * to_x.M,
                     .N = C,
                     .K = W * O,
                     .dtype = dtype,
                     .a = to_x.written,
                     .b = weight,
                     .out = args.out[0].data};
    if (const char* why = multiply(dx, stream)) return why;
    if (const char* why = windows.write(args, args.in[0].as<T>())) return why;
    const Product dweight{.transpose_a = true,
                          .M = O,
                          .N = K,
                          .K = rows,
                          .dtype = dtype,
                          .a = dy,
                          .b = windows.written,
                          .out = dw};
    if (const char* why = multiply(dweight, stream)) return why;
    // [O, W, C] -> [O, C, W]: here the channels are the middle axis.
    if (const char* why =
            lay_out(args, static_cast<const T*>(dw), args.out[1].as<T>(), O, C, W, K, 1, C, false))
      return why;
    if (O == 0) return nullptr;
    cudaError_t error =
        launch<conv_bias_columns<T>>(column_grid(O, chunks), column_block(), 0, stream, dy, rows, O, part);
    if (!error) error = launch_add_chunks(part, chunks, O, O, args.out[2].as<T>(), stream);
    return problem(error);
  }
};

}  // namespace

PLM_KERNEL(conv1d, space_of<ConvForward>) { return run_pass<ConvForward>(args); }
PLM_KERNEL(conv1d_grad, space_of<ConvBackward>) { return run_pass<ConvBackward>(args); }

}  // namespace plmcore::cuda
