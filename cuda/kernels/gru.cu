// A step: sums = h W^T; r, z = sigmoid(x + sums);  q = sum + bias;  n = tanh(x + r q);  h = n + z (h - n).
// GruBackward, from the last step to the first: dh = dy + z dh + dg W of the step behind, with dg the
// gradients of the three sums;  dn = dh (1 - z) (1 - n^2);  dq = dn r;  dr = dn q r (1 - r);  dz = dh (h - n)
// z (1 - z). The gradient of W is one product over all steps.
#include "device/activation.cuh"
#include "device/column_sums.cuh"
#include "device/recurrent.cuh"

namespace plmcore::cuda {

namespace {

enum { kX, kWeight, kBias, kH, kLengths };

// sums [B, 3 H], gates [B, 4 H]: r, z, n, q of this step
template <class T>
struct Cell {
  Steps steps;
  int64_t s, H;
  const T *x, *bias;
  const Acc<T>* sums;
  Acc<T>*h, *gates;
  T* y;

  __device__ __forceinline__ void operator()(int64_t b, int64_t u) const {
    using A = Acc<T>;
    A* gate = gates + b * 4 * H + u;
    if (!steps.active(b, s)) {
      for (int g = 0; g < 4; ++g) gate[g * H] = 0;
      return;
    }
    const int64_t row = steps.row(b, s);
    const T* in = x + row * 3 * H + u;
    const A* sum = sums + b * 3 * H + u;
    const A reset = sigmoid(sum[0] + widen(in[0])), keep = sigmoid(sum[H] + widen(in[H])),
            q = sum[2 * H] + (bias ? widen(bias[u]) : A(0)), made = std::tanh(widen(in[2 * H]) + reset * q),
            v = made + keep * (h[b * H + u] - made);
    gate[0] = reset;
    gate[H] = keep;
    gate[2 * H] = made;
    gate[3 * H] = q;
    h[b * H + u] = v;
    y[row * H + u] = narrow<T>(v);
  }
};

template <class T>
struct GruForward {
  using A = Acc<T>;
  const KernelArgs& args;
  int64_t H;
  Parts parts;
  Steps steps;
  A *h, *sums, *wide;

  GruForward(const KernelArgs& a, char* base)
      : args(a),
        H(a.in[kX].size[2] / 3),
        parts{base},
        steps{a.in[kX].size[0], a.in[kX].size[1], a.i("reverse") != 0} {
    steps.length = parts.take<int64_t>(steps.B);
    h = parts.take<A>(steps.B * H);
    sums = parts.take<A>(steps.B * 3 * H);
    wide = parts.take<A>(kWidens<T> ? 3 * H * H : 0);
  }
  const char* run() {
    const View& y = args.out[0];
    const A* weight;
    if (const char* why = read_lengths(args, ops::id_gru, args.in[kLengths], steps)) return why;
    if (const char* why = product_weight<T>(args, args.in[kWeight], wide, &weight)) return why;
    if (const char* why = widened<T>(args, args.in[kH], h, steps.B * H)) return why;
    if (y.numel)
      if (const char* why =
              problem(cudaMemsetAsync(y.data, 0, static_cast<size_t>(y.numel) * sizeof(T), stream_of(args))))
        return why;
    const Product product{.transpose_b = true,
                          .M = steps.B,
                          .N = 3 * H,
                          .K = H,
                          .dtype = kProducts<A>,
                          .a = h,
                          .b = weight,
                          .out = sums};
    Cell<T> cell{steps,
                 0,
                 H,
                 args.in[kX].as<T>(),
                 args.has(kBias) ? args.in[kBias].as<T>() : nullptr,
                 sums,
                 h,
                 args.out[2].as<A>(),
                 y.as<T>()};
    for (; cell.s < steps.T; ++cell.s, cell.gates += steps.B * 4 * H) {
      if (const char* why = multiply(product, stream_of(args))) return why;
      if (const char* why = for_cells(args, cell, steps.B, H)) return why;
    }
    return convert(args, static_cast<const A*>(h), args.out[1].as<T>(), steps.B * H);
  }
};

enum { kGWeight, kGH, kGLengths, kGY, kGGates, kGDy, kGDh };

template <class T>
struct CellGrad {
  Steps steps;
  int64_t s, H;
  const T* dy;
  const Acc<T>*gates, *before, *back;
  Acc<T>*carry, *dg;  // [B, H]; of this step [B, 3 H]
  T* dx;

  __device__ __forceinline__ void operator()(int64_t b, int64_t u) const {
    using A = Acc<T>;
    A* d = dg + b * 3 * H + u;
    if (!steps.active(b, s)) {
      for (int g = 0; g < 3; ++g) d[g * H] = 0;
      return;
    }
    const int64_t row = steps.row(b, s), i = b * H + u;
    const A dh = carry[i] + (steps.ends(b, s) ? A(0) : back[i]) + (dy ? widen(dy[row * H + u]) : A(0));
    const A* gate = gates + b * 4 * H + u;
    const A reset = gate[0], keep = gate[H], made = gate[2 * H], q = gate[3 * H];
    const A dn = dh * (1 - keep) * (1 - made) * (1 + made), dr = dn * q * reset * (1 - reset),
            dk = dh * (before[i] - made) * keep * (1 - keep);
    T* to = dx + row * 3 * H + u;
    d[0] = dr;
    d[H] = dk;
    d[2 * H] = dn * reset;
    to[0] = narrow<T>(dr);
    to[H] = narrow<T>(dk);
    to[2 * H] = narrow<T>(dn);
    carry[i] = dh * keep;
  }
};
// part [chunks][H]: sums of the third of dg
template <class A>
__global__ void __launch_bounds__(kColumns* kRowLanes)
    gru_bias_columns(const A* __restrict__ dg, int64_t rows, int64_t H, A* __restrict__ part) {
  chunk_column_sums<1>(rows, H, part, [&](int64_t r, int64_t column, A(&values)[1]) {
    values[0] = dg[r * 3 * H + 2 * H + column];
  });
}

template <class T>
struct GruBackward {
  using A = Acc<T>;
  const KernelArgs& args;
  int64_t H;
  Parts parts;
  Steps steps;
  A *back, *carry, *dg, *before, *wide, *sums, *part;

  GruBackward(const KernelArgs& a, char* base)
      : args(a),
        H(a.in[kGY].size[2]),
        parts{base},
        steps{a.in[kGY].size[0], a.in[kGY].size[1], a.i("reverse") != 0} {
    const int64_t rows = steps.B * steps.T;
    steps.length = parts.take<int64_t>(steps.B);
    back = parts.take<A>(steps.B * H);
    carry = parts.take<A>(steps.B * H);
    dg = parts.take<A>(rows * 3 * H);
    before = parts.take<A>(rows * H);
    wide = parts.take<A>(kWidens<T> ? 3 * H * H : 0);
    sums = parts.take<A>(kWidens<T> ? 3 * H * H : 0);
    part = parts.take<A>(row_chunks(rows) * H);
  }
  const char* run() {
    const View& dx = args.out[0];
    const int64_t B = steps.B, rows = B * steps.T, chunks = row_chunks(rows);
    const cudaStream_t stream = stream_of(args);
    const A* weight;
    if (H == 0) return nullptr;
    if (const char* why = read_lengths(args, ops::id_gru_grad, args.in[kGLengths], steps)) return why;
    if (const char* why = product_weight<T>(args, args.in[kGWeight], wide, &weight)) return why;
    if (const char* why = widened<T>(args, args.in[kGDh], carry, B * H)) return why;
    if (const char* why = widened<T>(args, View(), back, B * H)) return why;
    if (dx.numel)
      if (const char* why =
              problem(cudaMemsetAsync(dx.data, 0, static_cast<size_t>(dx.numel) * sizeof(T), stream)))
        return why;
    const TakePrevious<T> previous{steps, args.in[kGH].as<T>(), args.in[kGY].as<T>(), before, H};
    if (const char* why = for_cells(args, previous, rows, H)) return why;
    const T* dy = args.has(kGDy) ? args.in[kGDy].as<T>() : nullptr;
    for (int64_t s = steps.T; s-- > 0;) {
      const CellGrad<T> cell{steps,
                             s,
                             H,
                             dy,
                             args.in[kGGates].as<A>() + s * B * 4 * H,
                             before + s * B * H,
                             back,
                             carry,
                             dg + s * B * 3 * H,
                             dx.as<T>()};
      if (const char* why = for_cells(args, cell, B, H)) return why;
      const Product product{
          .M = B, .N = H, .K = 3 * H, .dtype = kProducts<A>, .a = cell.dg, .b = weight, .out = back};
      if (const char* why = multiply(product, stream)) return why;
    }
    const FirstState<T> first{steps, back, carry, args.out[2].as<T>(), H, true};
    if (const char* why = for_cells(args, first, B, H)) return why;
    cudaError_t error =
        launch<gru_bias_columns<A>>(column_grid(H, chunks), column_block(), 0, stream, dg, rows, H, part);
    if (!error) error = launch_add_chunks(part, chunks, H, H, args.out[3].as<T>(), stream);
    if (error) return problem(error);
    return weight_gradient<T>(args, 3 * H, H, rows, dg, before, sums, args.out[1].as<T>());
  }
};

}  // namespace

PLM_KERNEL(gru, space_of<GruForward>) { return run_pass<GruForward>(args); }
PLM_KERNEL(gru_grad, space_of<GruBackward>) { return run_pass<GruBackward>(args); }

}  // namespace plmcore::cuda
