// From the last step to the first: dh = dy + dz W of the step behind (dz: gradient of the four sums), through
// the projection dm = dh W_p, and
//   dc += dm o (1 - tanh^2 c), 0 where c was clipped;  do = dm tanh c;  di = dc g;  df = dc c_before;  dg =
//   dc i; dc of the step before = dc f.
// The gradients of the weights are one product each over all steps, from dz, dh and m kept step after step.
#include "device/recurrent.cuh"

namespace plmcore::cuda {

namespace {

enum { kWeight, kH, kC, kProjection, kLengths, kY, kGates, kCells, kDy, kDh, kDc };
enum { kDx, kDweight, kDh0, kDc0, kDprojection };

// dh of this step, [B, P]: 0 where the sequence is over, or the projection was clipped (clip as y shows it).
template <class T>
struct OutGrad {
  Steps steps;
  int64_t s, P;
  const T *y, *dy;
  const Acc<T>*back, *last;
  Acc<T>* dh;
  Acc<T> clip;

  __device__ __forceinline__ void operator()(int64_t b, int64_t u) const {
    using A = Acc<T>;
    A d = 0;
    if (steps.active(b, s)) {
      const int64_t at = steps.row(b, s) * P + u;
      d = (steps.ends(b, s) ? last : back)[b * P + u] + (dy ? widen(dy[at]) : A(0));
      d = where_free(widen(y[at]), clip, d);
    }
    dh[b * P + u] = d;
  }
};

template <class T>
struct CellGrad {
  Steps steps;
  int64_t s, H;
  const Acc<T>*gates, *cells, *cells_before, *shown;  // of this step; shown: the gradient of m
  Acc<T>*dc, *dz, *m;  // m: null without a projection
  T* dx;
  Acc<T> clip;

  __device__ __forceinline__ void operator()(int64_t b, int64_t u) const {
    using A = Acc<T>;
    const int64_t i = b * H + u;
    A* d = dz + b * 4 * H + u;
    if (!steps.active(b, s)) {
      for (int g = 0; g < 4; ++g) d[g * H] = 0;
      if (m) m[i] = 0;
      return;
    }
    const A* gate = gates + b * 4 * H + u;
    const A enter = gate[0], forget = gate[H], made = gate[2 * H], out = gate[3 * H], cell = cells[i],
            bent = std::tanh(cell), ds = shown[i],
            dcell = where_free(cell, clip, dc[i] + ds * out * (1 - bent) * (1 + bent));
    const A given[4] = {dcell * made * enter * (1 - enter), dcell * cells_before[i] * forget * (1 - forget),
                        dcell * enter * (1 - made) * (1 + made), ds * bent * out * (1 - out)};
    T* to = dx + steps.row(b, s) * 4 * H + u;
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      d[g * H] = given[g];
      to[g * H] = narrow<T>(given[g]);
    }
    dc[i] = dcell * forget;
    if (m) m[i] = out * bent;
  }
};

template <class T>
struct LstmBackward {
  using A = Acc<T>;
  const KernelArgs& args;
  int64_t B, H, P;
  bool projects;
  Parts parts;
  Steps steps;
  A *back, *last, *dc, *c0, *dz, *before, *dh, *m, *dm, *wide, *wide_projection, *sums;

  LstmBackward(const KernelArgs& a, char* base)
      : args(a),
        B(a.in[kY].size[0]),
        H(a.in[kC].size[1]),
        P(a.in[kH].size[1]),
        projects(a.has(kProjection)),
        parts{base},
        steps{B, a.in[kY].size[1], a.i("reverse") != 0} {
    const int64_t rows = B * steps.T;
    steps.length = parts.take<int64_t>(B);
    back = parts.take<A>(B * P);
    last = parts.take<A>(B * P);
    dc = parts.take<A>(B * H);
    c0 = parts.take<A>(B * H);
    dz = parts.take<A>(rows * 4 * H);
    before = parts.take<A>(rows * P);
    dh = parts.take<A>((projects ? rows : B) * P);  // kept of all steps for the projection's gradient
    m = parts.take<A>(projects ? rows * H : 0);
    dm = parts.take<A>(projects ? B * H : 0);
    wide = parts.take<A>(kWidens<T> ? 4 * H * P : 0);
    wide_projection = parts.take<A>(kWidens<T> && projects ? P * H : 0);
    sums = parts.take<A>(kWidens<T> ? 4 * H * P : 0);
  }

  const char* prepare(const A** weight, const A** projection) {
    const View& dx = args.out[kDx];
    if (const char* why = read_lengths(args, ops::id_lstm_grad, args.in[kLengths], steps)) return why;
    if (const char* why = product_weight<T>(args, args.in[kWeight], wide, weight)) return why;
    if (projects)
      if (const char* why = product_weight<T>(args, args.in[kProjection], wide_projection, projection))
        return why;
    if (const char* why = widened<T>(args, args.in[kDh], last, B * P)) return why;
    if (const char* why = widened<T>(args, View(), back, B * P)) return why;
    if (const char* why = widened<T>(args, args.in[kDc], dc, B * H)) return why;
    if (const char* why = widened<T>(args, args.in[kC], c0, B * H)) return why;
    if (dx.numel)
      if (const char* why = problem(
              cudaMemsetAsync(dx.data, 0, static_cast<size_t>(dx.numel) * sizeof(T), stream_of(args))))
        return why;
    const TakePrevious<T> previous{steps, args.in[kH].as<T>(), args.in[kY].as<T>(), before, P};
    return for_cells(args, previous, B * steps.T, P);
  }

  const char* step(int64_t s, const A* weight, const A* projection) {
    const cudaStream_t stream = stream_of(args);
    A* own = dh + (projects ? s * B * P : 0);
    const T* dy = args.has(kDy) ? args.in[kDy].as<T>() : nullptr;
    const auto limit = static_cast<A>(widen(narrow<T>(static_cast<A>(args.f("projection_clip")))));
    const OutGrad<T> out{steps, s, P, args.in[kY].as<T>(), dy, back, last, own, limit};
    if (const char* why = for_cells(args, out, B, P)) return why;
    if (projects) {
      const Product up{.M = B, .N = H, .K = P, .dtype = kProducts<A>, .a = own, .b = projection, .out = dm};
      if (const char* why = multiply(up, stream)) return why;
    }
    const A* cells = args.in[kCells].as<A>() + s * B * H;
    const CellGrad<T> cell{steps,
                           s,
                           H,
                           args.in[kGates].as<A>() + s * B * 4 * H,
                           cells,
                           s ? cells - B * H : c0,
                           projects ? dm : own,
                           dc,
                           dz + s * B * 4 * H,
                           projects ? m + s * B * H : nullptr,
                           args.out[kDx].as<T>(),
                           static_cast<A>(args.f("cell_clip"))};
    if (const char* why = for_cells(args, cell, B, H)) return why;
    const Product product{
        .M = B, .N = P, .K = 4 * H, .dtype = kProducts<A>, .a = cell.dz, .b = weight, .out = back};
    return multiply(product, stream);
  }

  const char* run() {
    const A *weight = nullptr, *projection = nullptr;
    const int64_t rows = B * steps.T;
    if (const char* why = prepare(&weight, &projection)) return why;
    for (int64_t s = steps.T; s-- > 0;)
      if (const char* why = step(s, weight, projection)) return why;
    const FirstState<T> first{steps, back, last, args.out[kDh0].as<T>(), P, false};
    if (const char* why = for_cells(args, first, B, P)) return why;
    if (const char* why = convert(args, static_cast<const A*>(dc), args.out[kDc0].as<T>(), B * H)) return why;
    if (const char* why =
            weight_gradient<T>(args, 4 * H, P, rows, dz, before, sums, args.out[kDweight].as<T>()))
      return why;
    if (!projects) return nullptr;
    return weight_gradient<T>(args, P, H, rows, dh, m, sums, args.out[kDprojection].as<T>());
  }
};

}  // namespace

PLM_KERNEL(lstm_grad, space_of<LstmBackward>) { return run_pass<LstmBackward>(args); }

}  // namespace plmcore::cuda
