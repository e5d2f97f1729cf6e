// A step: h = activation(x + h W^T). RnnBackward, from the last step to the first: dh = dy + dz W of the step
// behind, dz = dh activation'(y); the gradient of W is one product over all steps.
#include "device/recurrent.cuh"
#include "plmcore/ops.h"

namespace plmcore::cuda {

namespace {

bool is_relu(const KernelArgs& args) { return args.i("activation") == static_cast<int>(Activation::relu); }

// sums [B, H] = h W^T of this step
template <class T>
struct Cell {
  Steps steps;
  int64_t s, H;
  const T* x;
  const Acc<T>* sums;
  Acc<T>* h;
  T* y;
  bool rectify;

  __device__ __forceinline__ void operator()(int64_t b, int64_t u) const {
    if (!steps.active(b, s)) return;
    const int64_t at = steps.row(b, s) * H + u;
    const Acc<T> sum = sums[b * H + u] + widen(x[at]),
                 v = rectify ? (sum < 0 ? Acc<T>(0) : sum) : std::tanh(sum);
    h[b * H + u] = v;
    y[at] = narrow<T>(v);
  }
};

enum { kX, kWeight, kH, kLengths };

template <class T>
struct RnnForward {
  using A = Acc<T>;
  const KernelArgs& args;
  int64_t H;
  Parts parts;
  Steps steps;
  A *h, *sums, *wide;

  RnnForward(const KernelArgs& a, char* base)
      : args(a),
        H(a.in[kX].size[2]),
        parts{base},
        steps{a.in[kX].size[0], a.in[kX].size[1], a.i("reverse") != 0} {
    steps.length = parts.take<int64_t>(steps.B);
    h = parts.take<A>(steps.B * H);
    sums = parts.take<A>(steps.B * H);
    wide = parts.take<A>(kWidens<T> ? H * H : 0);
  }
  const char* run() {
    const View& y = args.out[0];
    const A* weight;
    if (const char* why = read_lengths(args, ops::id_rnn, args.in[kLengths], steps)) return why;
    if (const char* why = product_weight<T>(args, args.in[kWeight], wide, &weight)) return why;
    if (const char* why = widened<T>(args, args.in[kH], h, steps.B * H)) return why;
    if (y.numel)
      if (const char* why =
              problem(cudaMemsetAsync(y.data, 0, static_cast<size_t>(y.numel) * sizeof(T), stream_of(args))))
        return why;
    const Product product{.transpose_b = true,
                          .M = steps.B,
                          .N = H,
                          .K = H,
                          .dtype = kProducts<A>,
                          .a = h,
                          .b = weight,
                          .out = sums};
    Cell<T> cell{steps, 0, H, args.in[kX].as<T>(), sums, h, y.as<T>(), is_relu(args)};
    for (; cell.s < steps.T; ++cell.s) {
      if (const char* why = multiply(product, stream_of(args))) return why;
      if (const char* why = for_cells(args, cell, steps.B, H)) return why;
    }
    return convert(args, static_cast<const A*>(h), args.out[1].as<T>(), steps.B * H);
  }
};

enum { kGWeight, kGH, kGLengths, kGY, kGDy, kGDh };

template <class T>
struct CellGrad {
  Steps steps;
  int64_t s, H;
  const T *y, *dy;
  const Acc<T>*back, *last;
  Acc<T>* dz;  // of this step, [B, H]
  T* dx;
  bool rectify;

  __device__ __forceinline__ void operator()(int64_t b, int64_t u) const {
    using A = Acc<T>;
    const int64_t i = b * H + u;
    A d = 0;
    if (steps.active(b, s)) {
      const int64_t at = steps.row(b, s) * H + u;
      const A v = widen(y[at]);
      d = (steps.ends(b, s) ? last : back)[i] + (dy ? widen(dy[at]) : A(0));
      d = rectify ? (v > 0 ? d : v - v) : d * (1 - v) * (1 + v);
      dx[at] = narrow<T>(d);
    }
    dz[i] = d;
  }
};

template <class T>
struct RnnBackward {
  using A = Acc<T>;
  const KernelArgs& args;
  int64_t H;
  Parts parts;
  Steps steps;
  A *back, *last, *dz, *before, *wide, *sums;

  RnnBackward(const KernelArgs& a, char* base)
      : args(a),
        H(a.in[kGY].size[2]),
        parts{base},
        steps{a.in[kGY].size[0], a.in[kGY].size[1], a.i("reverse") != 0} {
    steps.length = parts.take<int64_t>(steps.B);
    back = parts.take<A>(steps.B * H);
    last = parts.take<A>(steps.B * H);
    dz = parts.take<A>(steps.B * steps.T * H);
    before = parts.take<A>(steps.B * steps.T * H);
    wide = parts.take<A>(kWidens<T> ? H * H : 0);
    sums = parts.take<A>(kWidens<T> ? H * H : 0);
  }
  const char* run() {
    const View& dx = args.out[0];
    const int64_t B = steps.B, rows = B * steps.T;
    const A* weight;
    if (const char* why = read_lengths(args, ops::id_rnn_grad, args.in[kGLengths], steps)) return why;
    if (const char* why = product_weight<T>(args, args.in[kGWeight], wide, &weight)) return why;
    if (const char* why = widened<T>(args, args.in[kGDh], last, B * H)) return why;
    if (const char* why = widened<T>(args, View(), back, B * H)) return why;
    if (dx.numel)
      if (const char* why = problem(
              cudaMemsetAsync(dx.data, 0, static_cast<size_t>(dx.numel) * sizeof(T), stream_of(args))))
        return why;
    const T* y = args.in[kGY].as<T>();
    if (const char* why =
            for_cells(args, TakePrevious<T>{steps, args.in[kGH].as<T>(), y, before, H}, rows, H))
      return why;
    CellGrad<T> cell{steps, 0,    H,       y,          args.has(kGDy) ? args.in[kGDy].as<T>() : nullptr,
                     back,  last, nullptr, dx.as<T>(), is_relu(args)};
    for (int64_t s = steps.T; s-- > 0;) {
      cell.s = s;
      cell.dz = dz + s * B * H;
      if (const char* why = for_cells(args, cell, B, H)) return why;
      const Product product{
          .M = B, .N = H, .K = H, .dtype = kProducts<A>, .a = cell.dz, .b = weight, .out = back};
      if (const char* why = multiply(product, stream_of(args))) return why;
    }
    const FirstState<T> first{steps, back, last, args.out[2].as<T>(), H, false};
    if (const char* why = for_cells(args, first, B, H)) return why;
    return weight_gradient<T>(args, H, H, rows, dz, before, sums, args.out[1].as<T>());
  }
};

}  // namespace

PLM_KERNEL(rnn, space_of<RnnForward>) { return run_pass<RnnForward>(args); }
PLM_KERNEL(rnn_grad, space_of<RnnBackward>) { return run_pass<RnnBackward>(args); }

}  // namespace plmcore::cuda
