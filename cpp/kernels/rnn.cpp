// A step: h = activation(x + h W^T). Backward, from the last step to the first: dh = dy + dz W of the step
// behind, dz = dh activation'(y); the gradient of W is one product over all steps.
#include "kernels/recurrent.h"
#include "plmcore/ops.h"

namespace plmcore::PLM_ISA {

namespace {

bool is_relu(const KernelArgs& args) { return args.i("activation") == static_cast<int>(Activation::relu); }

enum { kX, kWeight, kH, kLengths };

template <class T>
struct Forward {
  using S = typename Lane<T>::Scalar;

  const KernelArgs& args;
  int64_t B, H;
  Parts parts;
  Schedule at;
  S *h, *after;  // [B, H]
  StepWeight<T> weight;

  Forward(const KernelArgs& a, char* base)
      : args(a),
        B(a.in[kX].size[0]),
        H(a.in[kX].size[2]),
        parts{base},
        at(B, a.in[kX].size[1], parts),
        h(parts.take<S>(B * H)),
        after(parts.take<S>(B * H)),
        weight({a.in[kWeight].as<T>(), H, true}, H, H, 1, 0, a.in[kX].size[1], parts) {}

  void run() {
    at.fill(ops::id_rnn, args.in[kLengths], args.i("reverse") != 0);
    weight.pack();
    at.clear_padding(args.out[0].as<T>(), H);
    take_in_order<T>(at, args.in[kH], H, h);
    std::memcpy(args.out[1].data, args.in[kH].data, static_cast<size_t>(B * H) * sizeof(T));
    const bool rectify = is_relu(args);
    for (int64_t s = 0; s < at.longest; ++s) {
      over_units(H, [&](int64_t u, int64_t n, int worker) {
        weight.multiply(args, worker, 0, at.active[s], h, u, n, after + u, H);
        for (int64_t i = 0; i < at.active[s]; ++i) {
          const int64_t row = at.row(i, s) * H + u;
          const T* x = args.in[kX].as<T>() + row;
          T *y = args.out[0].as<T>() + row,
            *last = at.ends(i, s) ? args.out[1].as<T>() + at.order[i] * H + u : nullptr;
          S* to = after + i * H + u;
          over_row<T>(n, [&](int64_t j, int part) {
            const auto sum = load_at(to, j, part) + load_at(x, j, part), v = rectify ? relu(sum) : tanh(sum);
            store_at(to, j, part, v);
            store_at(y, j, part, v);
            if (last) store_at(last, j, part, v);
          });
        }
      });
      S* t = h;
      h = after;
      after = t;
    }
  }
};

enum { kGWeight, kGH, kGLengths, kGY, kGDy, kGDh };

template <class T>
struct Backward {
  using S = typename Lane<T>::Scalar;

  const KernelArgs& args;
  int64_t B, T_, H;
  Parts parts;
  Schedule at;
  S *dh, *dh_last, *dz, *before, *sums;  // [B, H], [B, H], [rows, H], [rows, H]; of the half types [H, H]
  StepWeight<T> weight;
  char* shared;

  Backward(const KernelArgs& a, char* base)
      : args(a),
        B(a.in[kGY].size[0]),
        T_(a.in[kGY].size[1]),
        H(a.in[kGY].size[2]),
        parts{base},
        at(B, T_, parts),
        dh(parts.take<S>(B * H)),
        dh_last(parts.take<S>(B * H)),
        dz(parts.take<S>(B * T_ * H)),
        before(parts.take<S>(B * T_ * H)),
        sums(parts.take<S>(std::is_same_v<T, S> ? 0 : H * H)),
        weight({a.in[kGWeight].as<T>(), H, false}, H, H, 1, 0, T_, parts),
        shared(parts.take<char>(static_cast<int64_t>(gemm_shared(H, B * T_)))) {}

  void run() {
    at.fill(ops::id_rnn_grad, args.in[kGLengths], args.i("reverse") != 0);
    weight.pack();
    at.clear_padding(args.out[0].as<T>(), H);
    take_in_order<T>(at, args.in[kGDh], H, dh_last);
    take_previous<T>(at, args.in[kGH], args.in[kGY], H, before);
    const bool rectify = is_relu(args);
    for (int64_t s = at.longest; s-- > 0;)
      over_units(H, [&](int64_t u, int64_t n, int worker) {
        from_behind(s + 1, u, n, worker);
        for (int64_t i = 0; i < at.active[s]; ++i) {
          const int64_t row = at.row(i, s) * H + u;
          const T *dy = args.has(kGDy) ? args.in[kGDy].as<T>() + row : nullptr,
                  *y = args.in[kGY].as<T>() + row;
          const S* from = (at.ends(i, s) ? dh_last : dh) + i * H + u;
          S* to = dz + (at.offset[s] + i) * H + u;
          T* dx = args.out[0].as<T>() + row;
          over_row<T>(n, [&](int64_t j, int part) {
            auto d = load_at(from, j, part);
            if (dy) d += load_at(dy, j, part);
            const auto v = load_at(y, j, part);
            d = rectify ? (v > 0 ? d : v - v) : d * (1 - v) * (1 + v);
            store_at(to, j, part, d);
            store_at(dx, j, part, d);
          });
        }
      });
    over_units(H, [&](int64_t u, int64_t n, int worker) { from_behind(0, u, n, worker); });
    for (int64_t i = at.longest ? at.active[0] : 0; i < B; ++i)
      std::memcpy(dh + i * H, dh_last + i * H, static_cast<size_t>(H) * sizeof(S));
    give_in_order(at, dh, H, args.out[2].as<T>());
    weight_gradient(args, shared, H, H, at.rows(), dz, before, sums, args.out[1].as<T>());
  }

  void from_behind(int64_t s, int64_t u, int64_t n, int worker) {
    if (s < at.longest)
      weight.multiply(args, worker, 0, at.active[s], dz + at.offset[s] * H, u, n, dh + u, H);
  }
};

}  // namespace

PLM_KERNEL(rnn, space_of<Forward>) { run_pass<Forward>(args); }
PLM_KERNEL(rnn_grad, space_of<Backward>) { run_pass<Backward>(args); }

}  // namespace plmcore::PLM_ISA
