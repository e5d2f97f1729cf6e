// y = activation(x W^T + bias) with a weight of fewer bits.   x float32 [M, K]; bias [N] or none -> float32
// [M, N]
//   weight bfloat16 [N, K]: widened to float32, then as linear.
//   weight int8 [N, K] with scale [N]: a row of x becomes whole numbers q in one or two int8 parts (13 bits:
//   128 high + low), the sums over k are exact, and y = sum * scale[n] * unit. A warp takes a column of y and
//   16 rows: each 16 bytes of the weight meet all of them (dp4a), so that the weight is read once for 16
//   rows.
#include <cstring>

#include "device/elementwise.cuh"
#include "device/finish.cuh"
#include "device/parts.h"
#include "device/rows.cuh"
#include "runtime/matmul.h"

namespace plmcore::cuda {

namespace {

constexpr int kRowsAtOnce = 16, kColumnWarps = 4;

__device__ __forceinline__ int bits_of(float x) {
  int bits;
  memcpy(&bits, &x, sizeof x);
  return bits;
}
__device__ __forceinline__ float of_bits(int bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// q [M][parts][stride] with zeros behind K, and what one of its numbers is worth. A row with NaN or infinity
// gets the unit NaN; one that is too small to scale counts as zeros.
template <int kParts>
struct RoundRow {
  const float* x;
  int8_t* q;
  float* unit;
  int K;
  int64_t stride;
  float most;

  template <class Row>
  __device__ __forceinline__ void row(int64_t r) const {
    const float* from = x + r * K;
    const Row row(from, K);
    typename Row::Held v;
    int top = 0;  // the bits of |x| are in order as whole numbers, and those of infinity and NaN come last
    row.each([&](int n, int column) {
      row.read(from, column, v[n]);
      row.inside(column, [&](int j) {
        const int b = bits_of(std::fabs(v[n][j]));
        top = b > top ? b : top;
      });
    });
    const float largest = of_bits(Row::template reduce<Most>(top)), inverse = most / largest;
    const bool fits = largest > 0 && inverse > 0 && inverse <= 3.402823466e+38f;
    row.each([&](int n, int column) {
      row.read_again(from, column, v[n]);
      row.inside(column, [&](int j) {
        const int whole = fits ? static_cast<int>(std::rint(v[n][j] * inverse)) : 0,
                  high = kParts == 1 ? whole : (whole + 64) >> 7;
        int8_t* to = q + r * kParts * stride + column + j;
        to[0] = static_cast<int8_t>(high);
        if constexpr (kParts == 2) to[stride] = static_cast<int8_t>(whole - (high << 7));
      });
    });
    if (!Row::first()) return;
    for (int p = 0; p < kParts; ++p)
      for (int64_t k = K; k < stride; ++k) q[(r * kParts + p) * stride + k] = 0;
    unit[r] = fits ? largest / most : largest <= 3.402823466e+38f ? 0.f : of_bits(0x7fffffff);
  }

  struct Most {
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
    template <class A> __device__ static A identity() { return 0; }
  };
};

// grid (N / 4, M / 16), block (32, 4); kWhole: rows of the weight are whole packs of 16
template <int kParts, bool kWhole>
__global__ void __launch_bounds__(32 * kColumnWarps, 5)  // 96 registers
    quantized_columns(const int8_t* __restrict__ q, const float* __restrict__ unit,
                      const int8_t* __restrict__ weight, const float* __restrict__ scale,
                      const float* __restrict__ bias, float* __restrict__ y, int64_t M, int64_t N, int64_t K,
                      int64_t stride, Activation activation) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * kColumnWarps + threadIdx.y,
                first = static_cast<int64_t>(blockIdx.y) * kRowsAtOnce;
  if (n >= N) return;  // a whole warp leaves, and no barrier follows
  const int rows = static_cast<int>(M - first < kRowsAtOnce ? M - first : kRowsAtOnce);
  int sum[kRowsAtOnce][kParts] = {};
  for (int64_t k = static_cast<int64_t>(threadIdx.x) * 16; k < K; k += 32 * 16) {
    Pack<int, 4> w = {};
    if constexpr (kWhole) w = *reinterpret_cast<const Pack<int, 4>*>(weight + n * K + k);
    else {
#pragma unroll
      for (int j = 0; j < 16; ++j)
        if (k + j < K)
          w.at[j / 4] |= static_cast<int>(static_cast<uint32_t>(static_cast<uint8_t>(weight[n * K + k + j]))
                                          << j % 4 * 8);
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i)
      if (i < rows) {
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
          const auto v = *reinterpret_cast<const Pack<int, 4>*>(q + ((first + i) * kParts + p) * stride + k);
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[i][p] = __dp4a(v.at[j], w.at[j], sum[i][p]);
        }
      }
  }
#pragma unroll
  for (int i = 0; i < kRowsAtOnce; ++i) {
    if (i >= rows) break;  // the same for the whole warp
    int total = warp_reduce<Sum>(sum[i][0]);
    if constexpr (kParts == 2) total = 128 * total + warp_reduce<Sum>(sum[i][1]);
    if (static_cast<int>(threadIdx.x) != i) continue;
    float z[1] = {static_cast<float>(total) * (scale[n] * unit[first + i])};
    if (bias) z[0] += bias[n];
    activate(activation, z);
    y[(first + i) * N + n] = z[0];
  }
}

int64_t steps_of(int64_t bits, int64_t K) {
  const int64_t most = (int64_t{1} << (bits - 1)) - 1,
                fits = ((int64_t{1} << 31) - 1) / (128 * (K > 0 ? K : 1));
  return most < fits ? most : fits;
}
int64_t padded(int64_t K) { return (K + 15) / 16 * 16; }

// q and units for an int8 weight, the widened weight for a bfloat16 one.
struct Space {
  Parts parts;
  int8_t* q;
  float *unit, *wide;

  Space(const KernelArgs& args, char* base) : parts{base} {
    const View& w = args.in[1];
    const bool whole = w.dtype == DType::int8;
    const int64_t M = args.in[0].rows(), K = args.in[0].last();
    q = parts.take<int8_t>(whole ? M * 2 * padded(K) : 0);
    unit = parts.take<float>(whole ? M : 0);
    wide = parts.take<float>(whole ? 0 : w.numel);
  }
};
Workspace workspace(const KernelArgs& args) { return {.shared = Space(args, nullptr).parts.used}; }

template <int kParts>
const char* by_whole_numbers(const KernelArgs& args, const Space& space, const float* bias,
                             Activation activation) {
  const View &x = args.in[0], &w = args.in[1];
  const int64_t M = x.rows(), K = x.last(), N = w.size[0], stride = padded(K);
  const RoundRow<kParts> round{x.as<float>(), space.q,
                               space.unit,    static_cast<int>(K),
                               stride,        static_cast<float>(steps_of(args.i("bits", 13), K))};
  if (K == 0) {
    if (const char* why =
            problem(cudaMemsetAsync(space.unit, 0, static_cast<size_t>(M) * sizeof(float), stream_of(args))))
      return why;
  } else if (const char* why = launch_rows<16>(args, round, round.x, M, K)) return why;
  const int64_t groups = (M + kRowsAtOnce - 1) / kRowsAtOnce;
  if (groups > 65535) return "a million rows and more are not on this device yet";
  const dim3 grid(static_cast<unsigned>((N + kColumnWarps - 1) / kColumnWarps),
                  static_cast<unsigned>(groups));
  const auto go = [&]<bool kWhole>(std::bool_constant<kWhole>) {
    return problem(launch<quantized_columns<kParts, kWhole>>(
        grid, dim3(32, kColumnWarps), 0, stream_of(args), space.q, space.unit, w.as<int8_t>(),
        args.in[2].as<float>(), bias, args.out[0].as<float>(), M, N, K, stride, activation));
  };
  return K % 16 == 0 && aligned(w.as<int8_t>()) ? go(std::true_type{}) : go(std::false_type{});
}

}  // namespace

PLM_KERNEL(linear_quantized, workspace) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const int64_t M = x.rows(), N = w.size[0];
  const auto activation = static_cast<Activation>(args.i("activation"));
  const float* bias = args.has(3) ? args.in[3].as<float>() : nullptr;
  const Space space(args, args.shared);
  if (M == 0 || N == 0) return nullptr;
  if (w.dtype == DType::int8)
    return args.i("bits", 13) == 8 ? by_whole_numbers<1>(args, space, bias, activation)
                                   : by_whole_numbers<2>(args, space, bias, activation);
  if (w.numel)
    if (const char* why = convert(args, w.as<bf16>(), space.wide, w.numel)) return why;
  const Product product{
      .transpose_b = true, .M = M, .N = N, .K = x.last(), .a = x.data, .b = space.wide, .out = y.data};
  if (const char* why = multiply(product, stream_of(args))) return why;
  if (!bias && activation == Activation::none) return nullptr;
  return problem(
      launch_finish<float>(y.as<float>(), bias, nullptr, y.as<float>(), M, N, activation, stream_of(args)));
}

}  // namespace plmcore::cuda
