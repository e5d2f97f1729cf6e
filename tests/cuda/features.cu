// What the emulator must do right, each a small kernel with a known result. Also compiled by nvcc, which
// shows that it is CUDA.
#include <cmath>

#include "device/column_sums.cuh"
#include "device/ptx.cuh"
#include "device/reduce.cuh"
#include "harness.h"

namespace plmcore::cuda {

namespace {

// Segments of 8 lanes; a source outside of the segment gives the lane its own value.
__global__ void shuffles(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = __shfl_sync(kFullWarp, lane, 3, 8);
  out[32 + lane] = __shfl_xor_sync(kFullWarp, lane, 5);
  out[64 + lane] = __shfl_down_sync(kFullWarp, lane, 3, 8);
  out[96 + lane] = __shfl_up_sync(kFullWarp, lane, 3, 8);
}
__global__ void votes(unsigned* out) {
  const unsigned lane = threadIdx.x;
  out[lane] = __ballot_sync(kFullWarp, lane % 3 == 0);
  out[32 + lane] = static_cast<unsigned>(__any_sync(kFullWarp, lane == 31)) * 2 +
                   static_cast<unsigned>(__all_sync(kFullWarp, lane < 31));
  out[64 + lane] = __match_any_sync(kFullWarp, lane % 4);
  unsigned half = 0;
  if (lane < 16) half = __ballot_sync(0x0000ffffu, lane & 1);  // the two halves meet apart
  else half = __ballot_sync(0xffff0000u, lane & 1);
  out[96 + lane] = half;
}
// A block of 40 threads: its second warp has 8 lanes.
__global__ void short_warp(unsigned* out) { out[threadIdx.x] = __ballot_sync(kFullWarp, 1); }
__global__ void counting_barriers(int* out) {
  const int n = __syncthreads_count(threadIdx.x % 2 == 0);
  const int any = __syncthreads_or(threadIdx.x == 70), all = __syncthreads_and(threadIdx.x < 70);
  out[threadIdx.x] = n * 100 + any * 10 + all;
}
__global__ void atomics(float* sum, int* most, int* least, unsigned* swapped) {
  atomicAdd(sum, 0.5f);
  atomicMax(most, static_cast<int>(threadIdx.x));
  atomicMin(least, -static_cast<int>(threadIdx.x));
  atomicCAS(swapped, threadIdx.x, threadIdx.x + 1u);
}
__global__ void block_sums(double* out, int n) {
  double v = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) v += i;
  const double sum = block_reduce<Sum>(v), most = block_reduce<Max>(v);
  if (threadIdx.x == 0) out[blockIdx.x] = sum + most * 0;
}
__global__ void reversed(float* x, int n) {
  PLM_DYNAMIC_SHARED(float, row);
  row[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = row[n - 1 - static_cast<int>(threadIdx.x)];
}
// Two buffers in turn: while one is read the other is filled.
__global__ void double_buffer(const float* x, float* sum, int tiles) {
  PLM_SHARED(float, tile, [2][128]);
  const int t = static_cast<int>(threadIdx.x);
  float total = 0;
  cp_async<16>(&tile[0][4 * t], x + 4 * t);
  cp_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) {
      cp_async<16>(&tile[(i + 1) % 2][4 * t], x + (i + 1) * 128 + 4 * t);
      cp_commit();
      cp_wait<1>();
    } else {
      cp_wait<0>();
    }
    __syncthreads();
    for (int k = 0; k < 4; ++k) total += tile[i % 2][32 * k + t];
    __syncthreads();
  }
  total = warp_reduce<Sum>(total);
  if (t == 0) *sum = total;
}
__global__ void places(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = static_cast<int>(block * 1000 + thread);
}
__global__ void fill(float* x, float v) { x[threadIdx.x] = v; }
__global__ void add(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
__global__ void divergent(float* x) {
  if (threadIdx.x < 16) __syncthreads();
  x[threadIdx.x] = 1;
}

void test_warps() {
  Array<int> shuffled(128);
  launch<shuffles>(1, 32, 0, nullptr, shuffled.device);
  expect(every(shuffled.read(),
               [](int i) {
                 const int lane = i % 32, end = lane / 8 * 8 + 8;
                 return i < 32   ? lane / 8 * 8 + 3
                        : i < 64 ? lane ^ 5
                        : i < 96 ? (lane + 3 < end ? lane + 3 : lane)
                                 : (lane - 3 >= end - 8 ? lane - 3 : lane);
               }),
         "shuffles");
  Array<unsigned> voted(128);
  launch<votes>(1, 32, 0, nullptr, voted.device);
  expect(every(voted.read(),
               [](int i) {
                 const int lane = i % 32;
                 return i < 32      ? 0x49249249u
                        : i < 64    ? 2u
                        : i < 96    ? 0x11111111u << lane % 4
                        : lane < 16 ? 0x0000aaaau
                                    : 0xaaaa0000u;
               }),
         "votes and matches");
  Array<unsigned> few(40);
  launch<short_warp>(1, 40, 0, nullptr, few.device);
  expect(every(few.read(), [](int i) { return i < 32 ? 0xffffffffu : 0xffu; }), "a last warp with few lanes");
}

void test_blocks() {
  Array<int> counted(71);
  launch<counting_barriers>(1, 71, 0, nullptr, counted.device);
  expect(every(counted.read(), [](int) { return 36 * 100 + 10; }), "barriers that count");
  Array<float> sum(1);
  Array<int> most(1), least(1);
  Array<unsigned> swapped(1);
  launch<atomics>(3, 64, 0, nullptr, sum.device, most.device, least.device, swapped.device);
  expect(sum.read()[0] == 96 && most.read()[0] == 63 && least.read()[0] == -63 && swapped.read()[0] > 0,
         "atomics");
  Array<double> total(2);
  launch<block_sums>(2, 96, 0, nullptr, total.device, 1000);
  expect(every(total.read(), [](int) { return 499500.0; }), "block_reduce");
  Array<float> row(50);
  for (int i = 0; i < 50; ++i) row.host[static_cast<size_t>(i)] = static_cast<float>(i);
  cudaMemcpy(row.device, row.host.data(), 50 * sizeof(float), cudaMemcpyHostToDevice);
  launch<reversed>(1, 50, 50 * sizeof(float), nullptr, row.device, 50);
  expect(every(row.read(), [](int i) { return static_cast<float>(49 - i); }), "dynamic shared memory");
  Array<float> tiles(640, 0.25f), tile_sum(1);
  launch<double_buffer>(1, 32, 0, nullptr, tiles.device, tile_sum.device, 5);
  expect(tile_sum.read()[0] == 160, "cp.async through two buffers");
  Array<int> numbered(12 * 30);
  launch<places>(dim3(2, 3, 2), dim3(5, 3, 2), 0, nullptr, numbered.device);
  expect(every(numbered.read(), [](int i) { return i / 30 * 1000 + i % 30; }), "indices in three dimensions");
}

void test_streams() {
  Array<float> x(32), y(32);
  cudaStream_t a, b;
  cudaEvent_t done;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  launch<fill>(1, 32, 0, a, x.device, 3.f);
  cudaEventRecord(done, a);
  launch<fill>(1, 32, 0, b, y.device, 2.f);
  cudaStreamWaitEvent(b, done, 0);
  launch<add>(1, 32, 0, b, y.device, x.device);
  cudaStreamSynchronize(b);
  expect(every(y.read(), [](int) { return 5.f; }), "a stream that waits for an event");
  cudaEventDestroy(done);
  cudaStreamDestroy(a);
  cudaStreamDestroy(b);
}

// The process and the device go on after a fault.
void test_recovery() {
  Array<float> x(32);
  launch<divergent>(1, 32, 0, nullptr, x.device);
  expect(cudaDeviceSynchronize() == cudaErrorLaunchFailure, "a fault is an error of the call that waits");
  launch<fill>(1, 32, 0, nullptr, x.device, 7.f);
  expect(cudaDeviceSynchronize() == cudaSuccess && every(x.read(), [](int) { return 7.f; }),
         "the device goes on after a fault");
  expect(
      launch<fill>(0, 32, 0, nullptr, x.device, 7.f) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess,
      "a grid of no blocks is refused");
  void* p = nullptr;
  expect(cudaMalloc(&p, size_t{1} << 50) == cudaErrorMemoryAllocation, "more memory than the device has");
}

}  // namespace

}  // namespace plmcore::cuda

int main() {
  using namespace plmcore::cuda;
  test_warps();
  test_blocks();
  test_streams();
  test_recovery();
  return failures != 0;
}
