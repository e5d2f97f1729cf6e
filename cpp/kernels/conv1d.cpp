// The W rows that a position sees lie one after the other in x with zeros around, so the windows are a matrix
// whose rows begin C apart: products by the weight [O, W, C] read it in place. A BLAS does not take rows that
// overlap; its types get the windows written out.
// Backward: dx is the same sum over dy with the weight [C, W, O] turned around; the weight's gradient is one
// product of dy, with zeros where a window crosses two texts, and the windows.
#include "kernels/gemm.h"
#include "kernels/parts.h"

namespace plmcore::PLM_ISA {

namespace {

// x [B, L, C] with `padding` rows of zeros at both ends, and its windows of W rows, M of each text.
template <class T>
struct Windows {
  static constexpr bool kInPlace = kOwnEngine<T>;
  int64_t B, L, C, W, padding, M, K;
  T *padded, *written;

  Windows(int64_t b, int64_t length, int64_t width, int64_t w, int64_t around, Parts& parts)
      : B(b), L(length), C(width), W(w), padding(around), M(length + 2 * around - w + 1), K(w * width) {
    padded = parts.take<T>((B * rows() + W) * C);
    written = parts.take<T>(kInPlace ? 0 : B * M * K);
  }
  int64_t rows() const { return L + 2 * padding; }  // of a text
  void fill(const T* x) {
    std::memset(padded, 0, static_cast<size_t>((B * rows() + W) * C) * sizeof(T));
    for (int64_t b = 0; b < B; ++b)
      std::memcpy(padded + (b * rows() + padding) * C, x + b * L * C, static_cast<size_t>(L * C) * sizeof(T));
    if constexpr (!kInPlace)
      for (int64_t b = 0; b < B; ++b)
        for (int64_t t = 0; t < M; ++t)
          std::memcpy(written + (b * M + t) * K, padded + (b * rows() + t) * C,
                      static_cast<size_t>(K) * sizeof(T));
  }
  Operand<T> of(int64_t b) const {
    return kInPlace ? Operand<T>{padded + b * rows() * C, C, true} : Operand<T>{written + b * M * K, K, true};
  }
};

// y [B, M, O] = the windows times the weight [O, K], plus bias.
template <class T>
struct Correlation {
  Windows<T> windows;
  int64_t O;
  T* weight;
  float* packed;

  Correlation(int64_t B, int64_t L, int64_t C, int64_t W, int64_t padding, int64_t out, Parts& parts)
      : windows(B, L, C, W, padding, parts), O(out) {
    weight = parts.take<T>(O * windows.K);
    packed = parts.take<float>(kOwnEngine<T> ? (ceil_div(O, kNR) * kNR) * windows.K + kNR : 0);
  }
  void run(const KernelArgs& args, const T* bias, T* y) const {
    const int64_t M = windows.M, K = windows.K;
    if (windows.B * M * O == 0) return;
    const Operand<T> by = {weight, K, true};
    if constexpr (kOwnEngine<T>) pack_strip(by, 0, O, K, packed);
    const int64_t down = ceil_div(M, kGemmRows), each = down * ceil_div(O, kGemmTile);
    const int64_t group = each > 1 ? 1 : ceil_div(1 << 18, M * O * (K > 0 ? K : 1));  // small ones together
    parallel_for(ceil_div(windows.B * each, group), [&](int64_t task, int worker) {
      for (int64_t t = task * group, e = min_of(t + group, windows.B * each); t < e; ++t) {
        const int64_t b = t / each, i = t % each % down * kGemmRows, j = t % each / down * kGemmTile,
                      m = min_of(kGemmRows, M - i), n = min_of(kGemmTile, O - j);
        T* to = y + (b * M + i) * O + j;
        gemm_tile(i, m, j, n, K, windows.of(b), by, kOwnEngine<T> ? packed + j * K : nullptr, to, O,
                  args.worker_as<float>(worker));
        for (int64_t r = 0; bias && r < m; ++r)
          for (int64_t c = 0; c < n; ++c)
            to[r * O + c] = from_float<T>(to_float(to[r * O + c]) + to_float(bias[j + c]));
      }
    });
  }
};

template <class T>
struct Forward {
  const KernelArgs& args;
  int64_t O, C, W;
  Parts parts;
  Correlation<T> sums;

  Forward(const KernelArgs& a, char* base)
      : args(a),
        O(a.in[1].size[0]),
        C(a.in[1].size[1]),
        W(a.in[1].size[2]),
        parts{base},
        sums(a.in[0].size[0], a.in[0].size[1], C, W, a.i("padding"), O, parts) {}

  void run() {
    const T* w = args.in[1].as<T>();
    for (int64_t o = 0; o < O; ++o)
      for (int64_t c = 0; c < C; ++c)
        for (int64_t k = 0; k < W; ++k) sums.weight[(o * W + k) * C + c] = w[(o * C + c) * W + k];
    sums.windows.fill(args.in[0].as<T>());
    sums.run(args, args.has(2) ? args.in[2].as<T>() : nullptr, args.out[0].as<T>());
  }
};

template <class T>
struct Backward {
  const KernelArgs& args;
  int64_t O, C, W, B, M;
  Parts parts;
  Correlation<T> to_x;
  Windows<T> windows;
  T *dy, *dw;  // [B rows, O] with zeros where a window crosses two texts; [O, W, C]
  char* shared;

  Backward(const KernelArgs& a, char* base)
      : args(a),
        O(a.in[1].size[0]),
        C(a.in[1].size[1]),
        W(a.in[1].size[2]),
        B(a.in[2].size[0]),
        M(a.in[2].size[1]),
        parts{base},
        to_x(B, M, O, W, W - 1 - a.i("padding"), C, parts),
        windows(B, a.in[0].size[1], C, W, a.i("padding"), parts),
        dy(parts.take<T>(Windows<T>::kInPlace ? B * windows.rows() * O : 0)),
        dw(parts.take<T>(O * W * C)),
        shared(parts.take<char>(static_cast<int64_t>(gemm_shared(W * C, B * windows.rows())))) {}

  void run() {
    const T *w = args.in[1].as<T>(), *given = args.in[2].as<T>();
    for (int64_t o = 0; o < O; ++o)
      for (int64_t c = 0; c < C; ++c)
        for (int64_t k = 0; k < W; ++k) to_x.weight[(c * W + (W - 1 - k)) * O + o] = w[(o * C + c) * W + k];
    to_x.windows.fill(given);
    to_x.run(args, nullptr, args.out[0].as<T>());

    windows.fill(args.in[0].as<T>());
    const int64_t K = W * C;
    if constexpr (Windows<T>::kInPlace) {
      const int64_t rows = windows.rows();
      std::memset(dy, 0, static_cast<size_t>(B * rows * O) * sizeof(T));
      for (int64_t b = 0; b < B; ++b)
        std::memcpy(dy + b * rows * O, given + b * M * O, static_cast<size_t>(M * O) * sizeof(T));
      gemm(args, shared, O, K, B * rows, Operand<T>{dy, O, false}, Operand<T>{windows.padded, C, false}, dw,
           K);
    } else {
      gemm(args, shared, O, K, B * M, Operand<T>{given, O, false}, Operand<T>{windows.written, K, false}, dw,
           K);
    }
    T *to = args.out[1].as<T>(), *dbias = args.out[2].as<T>();
    for_rows(O, C * W + B * M, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        for (int64_t c = 0; c < C; ++c)
          for (int64_t k = 0; k < W; ++k) to[(o * C + c) * W + k] = dw[(o * W + k) * C + c];
        typename Lane<T>::Scalar sum = 0;
        for (int64_t r = 0; r < B * M; ++r) sum += to_float(given[r * O + o]);
        dbias[o] = from_float<T>(sum);
      }
    });
  }
};

}  // namespace

PLM_KERNEL(conv1d, space_of<Forward>) { run_pass<Forward>(args); }
PLM_KERNEL(conv1d_grad, space_of<Backward>) { run_pass<Backward>(args); }

}  // namespace plmcore::PLM_ISA
