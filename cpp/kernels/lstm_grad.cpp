// From the last step to the first: dh = dy + dz W of the step behind (dz: gradient of the four sums), through
// the projection dm = dh W_p, and
//   dc += dm o (1 - tanh^2 c), 0 where c was clipped;  do = dm tanh c;  di = dc g;  df = dc c_before;
//   dg = dc i;  dc of the step before = dc f.
// The gradients of the weights are one product each over all steps, from dz, dh and m kept step after step.
#include "kernels/recurrent.h"

namespace plmcore::PLM_ISA {

namespace {

enum { kWeight, kH, kC, kProjection, kLengths, kY, kGates, kCells, kDy, kDh, kDc };
enum { kDx, kDweight, kDh0, kDc0, kDprojection };

template <class T>
struct Backward {
  using S = typename Lane<T>::Scalar;

  const KernelArgs& args;
  int64_t B, T_, H, P;
  bool projects;
  S cell_clip, projection_clip;  // the second as y shows it
  Parts parts;
  Schedule at;
  S *dh, *dh_last, *dc, *c0;  // [B, P], [B, P], [B, H], [B, H]
  S *dz, *before;  // [rows, 4 H], [rows, P]
  S *dp, *m, *dm, *sums;  // with a projection: [rows, P], [rows, H], [B, H]; of the half types: a weight
  StepWeight<T> weight, projection;
  char* shared;

  Backward(const KernelArgs& a, char* base)
      : args(a),
        B(a.in[kY].size[0]),
        T_(a.in[kY].size[1]),
        H(a.in[kC].size[1]),
        P(a.in[kH].size[1]),
        projects(a.has(kProjection)),
        cell_clip(static_cast<S>(a.f("cell_clip"))),
        projection_clip(to_float(from_float<T>(a.f("projection_clip")))),
        parts{base},
        at(B, T_, parts),
        dh(parts.take<S>(B * P)),
        dh_last(parts.take<S>(B * P)),
        dc(parts.take<S>(B * H)),
        c0(parts.take<S>(B * H)),
        dz(parts.take<S>(B * T_ * 4 * H)),
        before(parts.take<S>(B * T_ * P)),
        dp(parts.take<S>(projects ? B * T_ * P : 0)),
        m(parts.take<S>(projects ? B * T_ * H : 0)),
        dm(parts.take<S>(projects ? B * H : 0)),
        sums(parts.take<S>(std::is_same_v<T, S> ? 0 : 4 * H * P)),
        weight({a.in[kWeight].as<T>(), P, false}, P, 4 * H, 1, 0, T_, parts),
        projection({projects ? a.in[kProjection].as<T>() : nullptr, H, false}, projects ? H : 0, P, 1, 0, T_,
                   parts),
        shared(parts.take<char>(static_cast<int64_t>(gemm_shared(P > H ? P : H, B * T_)))) {}

  void run() {
    at.fill(ops::id_lstm_grad, args.in[kLengths], args.i("reverse") != 0);
    weight.pack();
    if (projects) projection.pack();
    at.clear_padding(args.out[kDx].as<T>(), 4 * H);
    take_in_order<T>(at, args.in[kDh], P, dh_last);
    take_in_order<T>(at, args.in[kDc], H, dc);
    take_in_order<T>(at, args.in[kC], H, c0);
    take_previous<T>(at, args.in[kH], args.in[kY], P, before);
    for (int64_t s = at.longest; s-- > 0;) {
      over_units(P, [&](int64_t u, int64_t n, int worker) {
        from_behind(s + 1, u, n, worker);
        for (int64_t i = 0; i < at.active[s]; ++i) {
          add_dy(s, i, u, n);
          if (!projects) cells(s, i, u, n, dh + i * P + u);
        }
      });
      if (projects)
        over_units(H, [&](int64_t u, int64_t n, int worker) {
          projection.multiply(args, worker, 0, at.active[s], dh, u, n, dm + u, H);
          for (int64_t i = 0; i < at.active[s]; ++i) cells(s, i, u, n, dm + i * H + u);
        });
    }
    over_units(P, [&](int64_t u, int64_t n, int worker) { from_behind(0, u, n, worker); });
    for (int64_t i = at.longest ? at.active[0] : 0; i < B; ++i)
      std::memcpy(dh + i * P, dh_last + i * P, static_cast<size_t>(P) * sizeof(S));
    give_in_order(at, dh, P, args.out[kDh0].as<T>());
    give_in_order(at, dc, H, args.out[kDc0].as<T>());
    weight_gradient(args, shared, 4 * H, P, at.rows(), dz, before, sums, args.out[kDweight].as<T>());
    if (projects) weight_gradient(args, shared, P, H, at.rows(), dp, m, sums, args.out[kDprojection].as<T>());
  }

  // dh from the sums of step s, for the sequences that are at work there.
  void from_behind(int64_t s, int64_t u, int64_t n, int worker) {
    if (s < at.longest)
      weight.multiply(args, worker, 0, at.active[s], dz + at.offset[s] * 4 * H, u, n, dh + u, P);
  }

  void add_dy(int64_t s, int64_t i, int64_t u, int64_t n) {
    const int64_t row = at.row(i, s) * P + u;
    const T* dy = args.has(kDy) ? args.in[kDy].as<T>() + row : nullptr;
    const T* y = args.in[kY].as<T>() + row;
    const S* from = (at.ends(i, s) ? dh_last : dh) + i * P + u;
    S *to = dh + i * P + u, *kept = projects ? dp + (at.offset[s] + i) * P + u : nullptr;
    over_row<T>(n, [&](int64_t j, int part) {
      auto d = load_at(from, j, part);
      if (dy) d += load_at(dy, j, part);
      if (projects) {
        d = where_free(load_at(y, j, part), projection_clip, d);
        store_at(kept, j, part, d);
      }
      store_at(to, j, part, d);
    });
  }

  void cells(int64_t s, int64_t i, int64_t u, int64_t n, const S* shown) {
    const int64_t place = at.offset[s] + i;
    const S *gates = args.in[kGates].as<S>() + place * 4 * H + u,
            *c = args.in[kCells].as<S>() + place * H + u,
            *c_before = s ? args.in[kCells].as<S>() + (at.offset[s - 1] + i) * H + u : c0 + i * H + u;
    S *d = dz + place * 4 * H + u, *carry = dc + i * H + u, *kept = projects ? m + place * H + u : nullptr;
    T* dx = args.out[kDx].as<T>() + at.row(i, s) * 4 * H + u;
    over_row<T>(n, [&](int64_t j, int part) {
      const auto in = load_at(gates, j, part), forget = load_at(gates + H, j, part),
                 made = load_at(gates + 2 * H, j, part), out = load_at(gates + 3 * H, j, part),
                 cell = load_at(c, j, part), bent = tanh(cell), ds = load_at(shown, j, part);
      const auto dcell =
          where_free(cell, cell_clip, load_at(carry, j, part) + ds * out * (1 - bent) * (1 + bent));
      const auto give = [&](int64_t g, auto v) __attribute__((always_inline)) {
        store_at(d + g * H, j, part, v);
        store_at(dx + g * H, j, part, v);
      };
      give(0, dcell * made * in * (1 - in));
      give(1, dcell * load_at(c_before, j, part) * forget * (1 - forget));
      give(2, dcell * in * (1 - made) * (1 + made));
      give(3, ds * bent * out * (1 - out));
      store_at(carry, j, part, dcell * forget);
      if (kept) store_at(kept, j, part, out * bent);
    });
  }
};

}  // namespace

PLM_KERNEL(lstm_grad, space_of<Backward>) { run_pass<Backward>(args); }

}  // namespace plmcore::PLM_ISA
