// Kernels with one fault each, put in on purpose: the emulator and the sanitizers must find them
// (test_faults.py says which of them finds what). `plm_cuda_faults NAME` runs one and prints "found: ...",
// "nan", or "unnoticed".
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/ptx.cuh"

namespace plmcore::cuda {

// The two halves of a warp wait at different barriers.
__global__ void divergent_barrier(float* x) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    x[threadIdx.x] = 1;
    __syncthreads();
  }
}
__global__ void exit_before_barrier(float* x) {
  if (threadIdx.x >= 40) return;
  __syncthreads();
  x[threadIdx.x] = 1;
}
__global__ void missing_barrier(float* x) {
  PLM_SHARED(float, a, [64]);
  a[threadIdx.x] = static_cast<float>(threadIdx.x);
  x[threadIdx.x] = a[63 - threadIdx.x];
}
// A second use of shared memory without a barrier after the first: a warp that runs ahead overwrites what
// others still read.
__global__ void missing_second_barrier(float* x) {
  PLM_SHARED(float, a, [64]);
  float sum = 0;
  for (int round = 0; round < 4; ++round) {
    a[threadIdx.x] = x[threadIdx.x] + static_cast<float>(round);
    __syncthreads();
    sum += a[63 - threadIdx.x];
  }
  x[64 + threadIdx.x % 64] = sum;
}
__global__ void shared_out_of_bounds(float* x) {
  PLM_SHARED(float, a, [32]);
  a[threadIdx.x + 1] = 1;
  __syncthreads();
  x[threadIdx.x] = 1;
}
__global__ void global_out_of_bounds(float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= n) x[i] = 1;
}
__global__ void uninitialised_shared(float* x) {
  PLM_SHARED(float, a, [64]);
  a[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = a[threadIdx.x + 32];
}
// The mask names lanes that do not come.
__global__ void shuffle_without_partners(float* x) {
  float v = x[threadIdx.x];
  if (threadIdx.x < 20) v += __shfl_xor_sync(0xffffffffu, v, 16);
  x[threadIdx.x] = v;
}
__global__ void divergent_shuffle(float* x) {
  float v = x[threadIdx.x];
  if (threadIdx.x & 1) v += __shfl_xor_sync(0xffffffffu, v, 1);
  else v -= __shfl_xor_sync(0xffffffffu, v, 2);
  x[threadIdx.x] = v;
}
__global__ void shuffle_outside_of_mask(float* x) {
  float v = x[threadIdx.x];
  if (threadIdx.x < 16) v += __shfl_xor_sync(0x0000ffffu, v, 16);
  x[threadIdx.x] = v;
}
__global__ void missing_syncwarp(float* x) {
  PLM_SHARED(float, a, [32]);
  a[threadIdx.x] = static_cast<float>(threadIdx.x);
  x[threadIdx.x] = a[31 - threadIdx.x];
}
__global__ void missing_copy_wait(float* x) {
  PLM_SHARED(float, a, [128]);
  cp_async<16>(a + 4 * threadIdx.x, x + 4 * threadIdx.x);
  cp_commit();
  __syncthreads();
  x[threadIdx.x] = a[threadIdx.x];
  cp_wait<0>();
}
__global__ void copy_never_awaited(float* x) {
  PLM_SHARED(float, a, [128]);
  cp_async<16>(a + 4 * threadIdx.x, x + 4 * threadIdx.x);
  cp_commit();
}
// Two buffers without a barrier after their use: the next copy goes over what a slower warp still reads.
__global__ void copy_over_what_is_read(float* x) {
  PLM_SHARED(float, a, [2][64]);
  const unsigned t = threadIdx.x;
  float sum = 0;
  cp_async<4>(&a[0][t], x + t);
  cp_commit();
  for (int round = 0; round < 4; ++round) {
    cp_async<4>(&a[(round + 1) % 2][t], x + t);
    cp_commit();
    cp_wait<1>();
    __syncthreads();
    sum += a[round % 2][63 - t];
  }
  cp_wait<0>();
  x[64 + t] = sum;
}
// Rows of a matrix that another copy was to bring.
__global__ void matrix_before_copy_wait(float* x) {
  PLM_SHARED(float, a, [128]);
  cp_async<16>(a + 4 * threadIdx.x, x + 4 * threadIdx.x);
  cp_commit();
  __syncthreads();
  uint32_t part[4];
  ldmatrix(part, a + 4 * threadIdx.x);
  x[threadIdx.x] = __uint_as_float(part[0]);
  cp_wait<0>();
}
// Lanes load rows that other lanes wrote.
__global__ void matrix_without_syncwarp(float* x) {
  PLM_SHARED(float, a, [128]);
  for (unsigned i = 0; i < 4; ++i) a[threadIdx.x + 32 * i] = x[threadIdx.x + 32 * i];
  uint32_t part[4];
  ldmatrix(part, a + 4 * threadIdx.x);
  for (unsigned i = 0; i < 4; ++i) x[threadIdx.x + 32 * i] = __uint_as_float(part[i]);
}
__global__ void misaligned_matrix(float* x) {
  PLM_SHARED(float, a, [132]);
  a[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  uint32_t part[1];
  ldmatrix(part, a + 4 * (threadIdx.x % 8) + 1);
  x[threadIdx.x] = __uint_as_float(part[0]);
}
__global__ void product_of_half_a_warp(float* x) {
  float c[4] = {};
  const uint32_t a[4] = {}, b[2] = {};
  if (threadIdx.x < 16) mma<__nv_bfloat16>(c, a, b);
  x[threadIdx.x] = c[0];
}
__global__ void misaligned(float* x) {
  const float4 v = *reinterpret_cast<float4*>(x + 1);
  x[0] = v.x;
}
__global__ void two_blocks_one_address(float* x) { x[threadIdx.x] = static_cast<float>(blockIdx.x); }
__global__ void missing_atomic(float* x) { x[threadIdx.x % 4] += 1; }
__global__ void fill(float* x, float v) { x[threadIdx.x] = v; }

}  // namespace plmcore::cuda

using namespace plmcore::cuda;

namespace {

constexpr int kFloats = 128;
float *device_x, host_x[kFloats];

void missing_event() {
  cudaStream_t a, b;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  float* y;
  cudaMalloc(reinterpret_cast<void**>(&y), sizeof host_x);
  launch<fill>(1, kFloats, 0, a, y, 3.f);
  cudaMemcpyAsync(device_x, y, sizeof host_x, cudaMemcpyDeviceToDevice,
                  b);  // should wait for an event of stream a
  cudaStreamSynchronize(b);
}

// The launch is refused.
void host_pointer() {
  float* p = host_x;
  if (const cudaError_t error = launch<fill>(1, kFloats, 0, nullptr, p, 1.f)) {
    std::printf("found: %s\n", cudaGetErrorString(error));
    std::exit(0);
  }
}
void too_much_shared() { launch<fill>(1, kFloats, 100 * 1024, nullptr, device_x, 1.f); }
// Outside of the device's work its memory is closed.
void host_touches_device() { host_x[0] = *static_cast<volatile float*>(device_x); }

struct Fault {
  const char* name;
  void (*run)();
};
template <auto kernel, int blocks, int threads>
void plain() {
  launch<kernel>(blocks, threads, 0, nullptr, device_x);
}
const Fault kFaults[] = {
    {"divergent_barrier", plain<divergent_barrier, 1, 32>},
    {"exit_before_barrier", plain<exit_before_barrier, 1, 64>},
    {"missing_barrier", plain<missing_barrier, 1, 64>},
    {"missing_second_barrier", plain<missing_second_barrier, 1, 64>},
    {"shared_out_of_bounds", plain<shared_out_of_bounds, 1, 32>},
    {"global_out_of_bounds", [] { launch<global_out_of_bounds>(2, 128, 0, nullptr, device_x, kFloats); }},
    {"uninitialised_shared", plain<uninitialised_shared, 1, 32>},
    {"shuffle_without_partners", plain<shuffle_without_partners, 1, 32>},
    {"divergent_shuffle", plain<divergent_shuffle, 1, 32>},
    {"shuffle_outside_of_mask", plain<shuffle_outside_of_mask, 1, 32>},
    {"missing_syncwarp", plain<missing_syncwarp, 1, 32>},
    {"missing_copy_wait", plain<missing_copy_wait, 1, 32>},
    {"copy_never_awaited", plain<copy_never_awaited, 1, 32>},
    {"copy_over_what_is_read", plain<copy_over_what_is_read, 1, 64>},
    {"matrix_before_copy_wait", plain<matrix_before_copy_wait, 1, 32>},
    {"matrix_without_syncwarp", plain<matrix_without_syncwarp, 1, 32>},
    {"misaligned_matrix", plain<misaligned_matrix, 1, 32>},
    {"product_of_half_a_warp", plain<product_of_half_a_warp, 1, 32>},
    {"misaligned", plain<misaligned, 1, 1>},
    {"two_blocks_one_address", plain<two_blocks_one_address, 2, 32>},
    {"missing_atomic", plain<missing_atomic, 1, 32>},
    {"missing_event", missing_event},
    {"host_pointer", host_pointer},
    {"too_much_shared", too_much_shared},
    {"host_touches_device", host_touches_device},
    {"none", [] { launch<fill>(1, kFloats, 0, nullptr, device_x, 1.f); }},
};

// The sum that missing_second_barrier should give, where no NaN shows the fault.
bool second_barrier_is_right() {
  for (int i = 0; i < 64; ++i)
    if (host_x[64 + i] != 4 * static_cast<float>(63 - i) + 6) return false;
  return true;
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::strcmp(words[1], "--list") == 0) {
    for (const Fault& f : kFaults) std::puts(f.name);
    return 0;
  }
  for (int i = 0; i < kFloats; ++i) host_x[i] = static_cast<float>(i);
  cudaMalloc(reinterpret_cast<void**>(&device_x), sizeof host_x);
  cudaMemcpy(device_x, host_x, sizeof host_x, cudaMemcpyHostToDevice);
  for (const Fault& f : kFaults) {
    if (count != 2 || std::strcmp(words[1], f.name) != 0) continue;
    f.run();
    if (const cudaError_t error = cudaDeviceSynchronize()) {
      std::printf("found: %s\n", cudaGetErrorString(error));
      return 0;
    }
    cudaMemcpy(host_x, device_x, sizeof host_x, cudaMemcpyDeviceToHost);
    for (const float v : host_x)
      if (std::isnan(v)) return std::puts("nan"), 0;
    if (f.run == plain<missing_second_barrier, 1, 64> && !second_barrier_is_right())
      return std::puts("wrong"), 0;
    std::puts("unnoticed");
    return 0;
  }
  std::fprintf(stderr, "no such fault\n");
  return 2;
}
