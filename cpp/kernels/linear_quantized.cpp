// bfloat16 weights widen on their way into the product. int8 weights meet activations that are rounded here,
// a row at a time; the sums are whole numbers, kept in y's memory until a tile is done and its scales, bias
// and activation are applied. With few rows W is read where it lies.
#include "core/isa.h"
#include "kernels/epilogue.h"
#include "kernels/few_rows.h"
#include "kernels/gemm.h"
#include "kernels/int8_gemm.h"

namespace plmcore::PLM_ISA {

// q = round(x Q / max |x|), and the scale max |x| / Q that undoes it. A row with NaN or infinity gets the
// scale NaN; one that is too small to scale counts as zeros.
template <int parts, class X>
static ActivationRow round_row(const float* x, int64_t K, float most, X* q) {
  const int64_t ld = activation_row<X>(K);
  vi top{};  // the bits of |x| are in order as whole numbers, too, and those of infinity and NaN come last
  over_row<float>(K, [&](int64_t k, int part) __attribute__((always_inline)) {
    const vi v = bits(abs(load_at(x, k, part)));
    top = v > top ? v : top;
  });
  const float largest = __builtin_bit_cast(float, fold(top, [](vi a, vi b) { return a > b ? a : b; })[0]),
              inverse = most / largest;
  if (!(largest > 0 && inverse > 0 && inverse <= __FLT_MAX__)) {
    std::memset(q, 0, static_cast<size_t>(parts * ld) * sizeof(X));
    return {largest <= __FLT_MAX__ ? 0.f : __builtin_nanf(""), 0};
  }
  typedef X narrow __attribute__((vector_size(kF * sizeof(X))));
  vi sum{};
  over_row<float>(K, [&](int64_t k, int part) __attribute__((always_inline)) {
    const vi r = round_to_int(load_at(x, k, part) * inverse);
    sum += r;
    const auto put = [&](X* to, vi v) __attribute__((always_inline)) {
      const narrow h = __builtin_convertvector(v, narrow);
      __builtin_memcpy(to + k, &h, part < 0 ? sizeof h : static_cast<size_t>(part) * sizeof(X));
    };
    if constexpr (parts == 1) {
      put(q, r);
    } else {  // r = 128 high + low with low from -64 to 63
      const vi high = (r + 64) >> 7;
      put(q, high);
      put(q + ld, r - (high << 7));
    }
  });
  for (int p = 0; p < parts; ++p)
    for (int64_t k = K; k < ld; ++k) q[p * ld + k] = 0;
  return {largest / most, sizeof(X) == 1 ? 128 * reduce_add(sum) : 0};
}

// gelu(x) = x (1/2 + x q(x^2)) with a polynomial q up to |x| = 5, error below 3e-6: far less than rounding
// has left of x, in half the time.
struct GeluOfRounded {
  PLM_INLINE vf operator()(vf x) const {
    const vf a = max(splat(-5.f), x), t = min(splat(5.f), a), s = t * t * 0.08f - 1.f;
    vf q = splat(0.000492967723f);
    q = q * s - 0.00151415286f;
    q = q * s + 0.0020018646f;
    q = q * s - 0.00291567529f;
    q = q * s + 0.00616542669f;
    q = q * s - 0.01097323f;
    q = q * s + 0.0164976586f;
    q = q * s - 0.0233367309f;
    q = q * s + 0.0314262286f;
    q = q * s - 0.0404329486f;
    q = q * s + 0.0515214205f;
    q = q * s - 0.0702966526f;
    q = q * s + 0.141363785f;
    return a * (t * q + 0.5f);
  }
};

// y = F((sum - excess) * (scale * unit) + bias) on a block of m rows and n columns of y, which holds the
// sums.
using FinishSums = void (*)(float* y, int64_t ldy, int64_t m, int64_t n, const ActivationRow* row,
                            const float* scale, const float* bias);

template <class F>
static void finish_sums(float* y, int64_t ldy, int64_t m, int64_t n, const ActivationRow* row,
                        const float* scale, const float* bias) {
  over_row<float>(n, [&](int64_t j, int part) __attribute__((always_inline)) {
    const vf s = load_at(scale, j, part),
             b = bias ? load_at(bias, j, part) : splat(-0.f);  // z - 0 is z, also for -0
    for (int64_t i = 0; i < m; ++i) {
      const vf z = to_float(bits(load_at(y + i * ldy, j, part)) - row[i].excess) * (s * row[i].unit) + b;
      store_at(y + i * ldy, j, part, F()(z));
    }
  });
}
static FinishSums finish_sums_of(int64_t activation) {
  const FinishSums table[] = {finish_sums<NoActivation>, finish_sums<Relu>, finish_sums<GeluOfRounded>,
                              finish_sums<GeluTanh>,     finish_sums<Tanh>, finish_sums<Sigmoid>,
                              finish_sums<Silu>};
  return table[activation];
}

template <class X, int parts>
static void int8_linear(const KernelArgs& args, int64_t M, int64_t N, int64_t K, float* out,
                        const float* bias, FinishSums finish) {
  const int64_t ld = activation_row<X>(K);
  const float *x = args.in[0].as<float>(), *scale = args.in[2].as<float>();
  X* q = args.shared_as<X>();
  ActivationRow* row = reinterpret_cast<ActivationRow*>(args.shared + activation_bytes<X, parts>(M, K));
  const float steps = static_cast<float>(activation_most(args.i("bits", 13), K));
  for_rows(M, K, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) row[i] = round_row<parts>(x + i * K, K, steps, q + i * parts * ld);
  });
  const auto epilogue = [&](int64_t i, int64_t j, int64_t m, int64_t n) {
    finish(out + i * N + j, N, m, n, row + i, scale + j, bias ? bias + j : nullptr);
  };
  const int8_t* w = args.in[1].as<int8_t>();
  int32_t* sums = reinterpret_cast<int32_t*>(out);
  if (M * parts <= kInt8FewRows || K == 0)
    return few_rows<parts>(M, N, K, q, ld, w, sums, [&](int64_t b, int64_t e) { epilogue(0, b, M, e - b); });
  int8_gemm<parts>(args, M, N, K, q, ld, w, sums, epilogue);
}

static Workspace workspace(const KernelArgs& args) {
  const View& weight = args.in[1];
  const int64_t N = weight.size[0], K = weight.size[1];
  if (weight.dtype == DType::int8)
    return {.shared = activation_workspace(args.in[0].rows(), K), .per_worker = kInt8Workspace};
  return {.shared = gemm_shared(N, K), .per_worker = kGemmWorkspace};
}

PLM_KERNEL(linear_quantized, workspace) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const int64_t M = x.rows(), K = x.last(), N = w.size[0], activation = args.i("activation");
  if (M == 0 || N == 0) return;
  const float* bias = args.has(3) ? args.in[3].as<float>() : nullptr;
  float* out = y.as<float>();
  if (w.dtype == DType::int8) {
    const FinishSums finish = finish_sums_of(activation);
#ifdef PLM_BYTE_PRODUCTS
    if (cpu_multiplies_bytes()) {
      if (args.i("bits", 13) == 8) return int8_linear<int8_t, 1>(args, M, N, K, out, bias, finish);
      return int8_linear<int8_t, 2>(args, M, N, K, out, bias, finish);
    }
#endif
    return int8_linear<int16_t, 1>(args, M, N, K, out, bias, finish);
  }
  const FinishRow<float> finish = finish_of<float>(activation);
  const auto epilogue = [&](int64_t i, int64_t j, int64_t m, int64_t n) {
    if (!bias && activation == 0) return;
    for (int64_t r = i; r < i + m; ++r) finish(out + r * N + j, bias ? bias + j : nullptr, nullptr, n);
  };
  if (M <= kGemmFewRows)
    return few_rows(M, N, K, x.as<float>(), K, w.as<bf16>(), out,
                    [&](int64_t b, int64_t e) { epilogue(0, b, M, e - b); });
  gemm(args, args.shared, M, N, K, Operand<float>{x.as<float>(), K, true},
       Operand<bf16>{w.as<bf16>(), K, true}, nullptr, out, N, epilogue);
}

}  // namespace plmcore::PLM_ISA
