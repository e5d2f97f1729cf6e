// Each function of device/ptx.cuh against a plain formula. Also compiled by nvcc, which shows that the text
// of the PTX is valid.
#include "device/ptx.cuh"

#include <cmath>
#include <cstring>

#include "device/element.cuh"
#include "harness.h"

namespace plmcore::cuda {

namespace {

constexpr int kLanes = 32;

// Lanes with an odd number get zeros, from an address that may not be read.
template <int kBytes>
__global__ void copies(const char* x, char* y) {
  PLM_SHARED(float4, tile, [kLanes]);
  const unsigned lane = threadIdx.x;
  char* mine = reinterpret_cast<char*>(tile) + kBytes * lane;
  cp_async<kBytes>(mine, lane % 2 ? x - 4096 : x + kBytes * lane, lane % 2 == 0);
  cp_commit();
  cp_wait<0>();
  __syncthreads();
  for (int i = 0; i < kBytes; ++i) y[kBytes * lane + i] = mine[i];
}

// N matrices of 8 x 8 elements, numbered in the order of memory.
template <int N, bool kTrans>
__global__ void matrices(const uint16_t* x, uint32_t* y) {
  PLM_SHARED(uint4, tile, [8 * N]);
  const unsigned lane = threadIdx.x;
  auto* elements = reinterpret_cast<uint16_t*>(tile);
  for (unsigned i = lane; i < 64 * N; i += kLanes) elements[i] = x[i];
  __syncthreads();
  uint32_t got[N];
  ldmatrix<kTrans>(got, tile + lane % (8 * N));
  for (int i = 0; i < N; ++i) y[kLanes * i + lane] = got[i];
}

// c [16][8] += a [16][K] b [8][K]^T from global memory, by the layouts of the PTX manual.
template <class T, class C, class F>
__device__ __forceinline__ void product(const T* a, const T* b, C* c, F multiply) {
  constexpr int K = 32 / sizeof(T), kPart = 4 / sizeof(T);
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  uint32_t left[4], right[2];
  C sums[4];
  for (int r = 0; r < 4; ++r)
    left[r] = *reinterpret_cast<const uint32_t*>(a + (g + 8 * (r % 2)) * K + t * kPart + r / 2 * K / 2);
  for (int r = 0; r < 2; ++r)
    right[r] = *reinterpret_cast<const uint32_t*>(b + g * K + t * kPart + r * K / 2);
  for (int r = 0; r < 4; ++r) sums[r] = c[(g + 8 * (r / 2)) * 8 + 2 * t + r % 2];
  multiply(sums, left, right);
  for (int r = 0; r < 4; ++r) c[(g + 8 * (r / 2)) * 8 + 2 * t + r % 2] = sums[r];
}
template <class T>
__global__ void half_product(const T* a, const T* b, float* c) {
  product(a, b, c, [](auto& s, auto& l, auto& r) { mma<T>(s, l, r); });
}
__global__ void int8_product(const int8_t* a, const int8_t* b, int32_t* c) {
  product(a, b, c, [](auto& s, auto& l, auto& r) { mma_int8(s, l, r); });
}
// The same from rows in shared memory: a [16][16], b [16][8] as it is stored for a product with values.
__global__ void loaded_product(const bf16* a, const bf16* b, float* c) {
  PLM_SHARED(uint4, left, [32]);
  PLM_SHARED(uint4, right, [16]);
  const unsigned lane = threadIdx.x;
  cp_async<16>(&left[lane], a + 8 * lane);
  if (lane < 16) cp_async<16>(&right[lane], b + 8 * lane);
  cp_commit();
  cp_wait<0>();
  __syncthreads();
  uint32_t l[4], r[2];
  float sums[4] = {};
  ldmatrix(l, &left[lane % 16 * 2 + lane / 16]);
  ldmatrix<true>(r, &right[lane % 16]);
  mma<bf16>(sums, l, r);
  for (unsigned k = 0; k < 4; ++k) c[(lane / 4 + 8 * (k / 2)) * 8 + 2 * (lane % 4) + k % 2] = sums[k];
}
__global__ void powers(const float* x, float* y) { y[threadIdx.x] = ex2(x[threadIdx.x]); }

// Small whole numbers: every product and sum is exact in every type.
template <class T>
std::vector<T> numbers(int n, int step) {
  std::vector<T> x;
  for (int i = 0; i < n; ++i) x.push_back(static_cast<T>(static_cast<float>(i * step % 17 - 8)));
  return x;
}
template <class T>
float number(T x) {
  return static_cast<float>(x);
}

template <int kBytes>
void test_copies(const char* what) {
  Array<char> x(8192, 7), y(kBytes * kLanes);
  launch<copies<kBytes>>(1, kLanes, 0, nullptr, x.device + 4096, y.device);
  expect(every(y.read(), [](int i) { return i / kBytes % 2 ? 0 : 7; }), what);
}
template <int N, bool kTrans>
void test_matrices(const char* what) {
  std::vector<uint16_t> elements;
  for (int i = 0; i < 64 * N; ++i) elements.push_back(static_cast<uint16_t>(1000 + i));
  Array<uint16_t> x(elements);
  Array<uint32_t> y(kLanes * N);
  launch<matrices<N, kTrans>>(1, kLanes, 0, nullptr, x.device, y.device);
  expect(every(y.read(),
               [](int i) {
                 const int g = i % 32 / 4, t = i % 4, matrix = 1000 + i / 32 * 64;
                 const int first = matrix + (kTrans ? 16 * t + g : 8 * g + 2 * t);
                 return static_cast<uint32_t>(first) | static_cast<uint32_t>(first + (kTrans ? 8 : 1)) << 16;
               }),
         what);
}
template <auto kernel, class T, class C>
void test_product(const char* what, bool columns_in_rows = false) {
  const int K = columns_in_rows ? 16 : 32 / static_cast<int>(sizeof(T));
  Array<T> a(numbers<T>(16 * K, 5)), b(numbers<T>(8 * K, 7));
  Array<C> c(128, columns_in_rows ? C(0) : C(3));
  launch<kernel>(1, kLanes, 0, nullptr, a.device, b.device, c.device);
  const auto expected = [&](int i) {
    float sum = columns_in_rows ? 0 : 3;
    for (int k = 0; k < K; ++k)
      sum += number(a.host[static_cast<size_t>(i / 8 * K + k)]) *
             number(b.host[static_cast<size_t>(columns_in_rows ? k * 8 + i % 8 : i % 8 * K + k)]);
    return static_cast<C>(sum);
  };
  expect(every(c.read(), expected), what);
}
void test_powers() {
  Array<float> x(std::vector<float>{0, 1, -1, 0.5f, -20.25f, 127, -126, -150, -INFINITY, INFINITY, NAN}),
      y(11);
  launch<powers>(1, 11, 0, nullptr, x.device, y.device);
  bool good = std::isnan(y.read()[10]);
  for (size_t i = 0; i < 10; ++i) {
    const float exact = i == 7 ? 0.f : std::exp2(x.host[i]);
    good = good && (y.host[i] == exact || std::abs(y.host[i] - exact) <= 3e-7f * exact);
  }
  expect(good, "ex2");
}

}  // namespace

}  // namespace plmcore::cuda

int main() {
  using namespace plmcore::cuda;
  test_copies<4>("cp.async of 4 bytes, or zeros");
  test_copies<8>("cp.async of 8 bytes, or zeros");
  test_copies<16>("cp.async of 16 bytes, or zeros");
  test_matrices<1, false>("ldmatrix x1");
  test_matrices<2, false>("ldmatrix x2");
  test_matrices<4, false>("ldmatrix x4");
  test_matrices<1, true>("ldmatrix x1, transposed");
  test_matrices<2, true>("ldmatrix x2, transposed");
  test_matrices<4, true>("ldmatrix x4, transposed");
  test_product<half_product<bf16>, bf16, float>("m16n8k16 of bf16");
  test_product<half_product<f16>, f16, float>("m16n8k16 of f16");
  test_product<int8_product, int8_t, int32_t>("m16n8k32 of int8");
  test_product<loaded_product, bf16, float>("a product of rows in shared memory", true);
  test_powers();
  return failures != 0;
}
