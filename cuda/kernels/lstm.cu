// A step: sums = h W^T, then i, f, o = sigmoid, g = tanh of sums + x;
//   c = clip(f c + i g);  m = o tanh c;  h = m, or clip(m W_p^T) in a product of its own.
#include "device/activation.cuh"
#include "device/recurrent.cuh"

namespace plmcore::cuda {

namespace {

enum { kX, kWeight, kH, kC, kProjection, kLengths };

// gates [B, 4 H] of this step: the sums, then i, f, g, o
template <class T>
struct Cell {
  Steps steps;
  int64_t s, H;
  const T* x;
  Acc<T>*gates, *cells, *c, *shown;  // shown [B, H]: h, or m before the projection
  T* y;                              // null with a projection
  Acc<T> clip;

  __device__ __forceinline__ void operator()(int64_t b, int64_t u) const {
    using A = Acc<T>;
    A* gate = gates + b * 4 * H + u;
    const int64_t i = b * H + u;
    if (!steps.active(b, s)) {
      for (int g = 0; g < 4; ++g) gate[g * H] = 0;
      cells[i] = 0;
      return;
    }
    const int64_t row = steps.row(b, s);
    const T* in = x + row * 4 * H + u;
    const A enter = sigmoid(gate[0] + widen(in[0])), forget = sigmoid(gate[H] + widen(in[H])),
            made = std::tanh(gate[2 * H] + widen(in[2 * H])), out = sigmoid(gate[3 * H] + widen(in[3 * H])),
            cell = clipped(forget * c[i] + enter * made, clip), v = out * std::tanh(cell);
    gate[0] = enter;
    gate[H] = forget;
    gate[2 * H] = made;
    gate[3 * H] = out;
    c[i] = cells[i] = cell;
    shown[i] = v;
    if (y) y[row * H + u] = narrow<T>(v);
  }
};
// h = clip(the projected m); sums [B, P]
template <class T>
struct Projected {
  Steps steps;
  int64_t s, P;
  const Acc<T>* sums;
  Acc<T>* h;
  T* y;
  Acc<T> clip;

  __device__ __forceinline__ void operator()(int64_t b, int64_t u) const {
    if (!steps.active(b, s)) return;
    const Acc<T> v = clipped(sums[b * P + u], clip);
    h[b * P + u] = v;
    y[steps.row(b, s) * P + u] = narrow<T>(v);
  }
};

template <class T>
struct LstmForward {
  using A = Acc<T>;
  const KernelArgs& args;
  int64_t B, H, P;
  bool projects;
  Parts parts;
  Steps steps;
  A *h, *c, *m, *sums, *wide, *wide_projection;

  LstmForward(const KernelArgs& a, char* base)
      : args(a),
        B(a.in[kX].size[0]),
        H(a.in[kC].size[1]),
        P(a.in[kH].size[1]),
        projects(a.has(kProjection)),
        parts{base},
        steps{B, a.in[kX].size[1], a.i("reverse") != 0} {
    steps.length = parts.take<int64_t>(B);
    h = parts.take<A>(B * P);
    c = parts.take<A>(B * H);
    m = parts.take<A>(projects ? B * H : 0);
    sums = parts.take<A>(projects ? B * P : 0);
    wide = parts.take<A>(kWidens<T> ? 4 * H * P : 0);
    wide_projection = parts.take<A>(kWidens<T> && projects ? P * H : 0);
  }
  const char* run() {
    const View& y = args.out[0];
    const cudaStream_t stream = stream_of(args);
    const A *weight, *projection = nullptr;
    if (const char* why = read_lengths(args, ops::id_lstm, args.in[kLengths], steps)) return why;
    if (const char* why = product_weight<T>(args, args.in[kWeight], wide, &weight)) return why;
    if (projects)
      if (const char* why = product_weight<T>(args, args.in[kProjection], wide_projection, &projection))
        return why;
    if (const char* why = widened<T>(args, args.in[kH], h, B * P)) return why;
    if (const char* why = widened<T>(args, args.in[kC], c, B * H)) return why;
    if (y.numel)
      if (const char* why =
              problem(cudaMemsetAsync(y.data, 0, static_cast<size_t>(y.numel) * sizeof(T), stream)))
        return why;
    Cell<T> cell{steps,
                 0,
                 H,
                 args.in[kX].as<T>(),
                 args.out[3].as<A>(),
                 args.out[4].as<A>(),
                 c,
                 projects ? m : h,
                 projects ? nullptr : y.as<T>(),
                 static_cast<A>(args.f("cell_clip"))};
    Projected<T> projected{steps, 0, P, sums, h, y.as<T>(), static_cast<A>(args.f("projection_clip"))};
    for (; cell.s < steps.T; ++cell.s, cell.gates += B * 4 * H, cell.cells += B * H) {
      const Product step{.transpose_b = true,
                         .M = B,
                         .N = 4 * H,
                         .K = P,
                         .dtype = kProducts<A>,
                         .a = h,
                         .b = weight,
                         .out = cell.gates};
      if (const char* why = multiply(step, stream)) return why;
      if (const char* why = for_cells(args, cell, B, H)) return why;
      if (!projects) continue;
      const Product down{.transpose_b = true,
                         .M = B,
                         .N = P,
                         .K = H,
                         .dtype = kProducts<A>,
                         .a = m,
                         .b = projection,
                         .out = sums};
      if (const char* why = multiply(down, stream)) return why;
      projected.s = cell.s;
      if (const char* why = for_cells(args, projected, B, P)) return why;
    }
    if (const char* why = convert(args, static_cast<const A*>(h), args.out[1].as<T>(), B * P)) return why;
    return convert(args, static_cast<const A*>(c), args.out[2].as<T>(), B * H);
  }
};

}  // namespace

PLM_KERNEL(lstm, space_of<LstmForward>) { return run_pass<LstmForward>(args); }

}  // namespace plmcore::cuda
