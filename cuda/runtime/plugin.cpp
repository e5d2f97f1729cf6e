// The C entry of the plug-in: GPUs, their memory, copies, and the table of kernels. plmcore opens this
// library on the first use of device "cuda" (cpp/core/plugin.h).
#include <array>
#include <atomic>
#include <new>
#include <string>

#include "core/plugin.h"
#include "runtime/runtime.h"

#ifdef PLM_CUDA_EMU
#include "emu/memory.h"
#endif

namespace plmcore::cuda {

#define PLM_CUDA_KERNEL(name) extern const PluginKernelDef name##_kernel;
#include "kernels/kernels.def"
#undef PLM_CUDA_KERNEL

namespace {

thread_local std::string t_text;

const char* say(std::string text) {
  t_text = std::move(text);
  return t_text.c_str();
}

template <const PluginKernelDef& kernel>
const char* run(const KernelArgs& args) {
#ifdef PLM_CUDA_EMU
  const emu::OpFence fence(stream_of(args), args, gpu_of(args).bad_position, sizeof(*Gpu::bad_position));
#endif
  return kernel.run(args);
}
template <const PluginKernelDef& kernel>
Workspace workspace(const KernelArgs& args) {
  return kernel.workspace ? kernel.workspace(args) : Workspace();
}

// The kernels of the ops that have one here, by their places in ops.def.
constexpr std::array<PluginKernelDef, ops::kCount> kKernels = [] {
  std::array<PluginKernelDef, ops::kCount> table = {};
#define PLM_CUDA_KERNEL(name) table[ops::id_##name] = {run<name##_kernel>, workspace<name##_kernel>};
#include "kernels/kernels.def"
#undef PLM_CUDA_KERNEL
  return table;
}();

const char* count(int* out) {
  if (const char* why = problem(cudaGetDeviceCount(out)))
    return say(std::string("no GPU answers (") + why + "); it needs an NVIDIA GPU and its driver");
  return *out ? nullptr : "there is no NVIDIA GPU";
}

// Calls of this thread go to the GPU `device`. It is the current one already, but for programs with several.
Gpu& use(void* device) {
  auto& gpu = *static_cast<Gpu*>(device);
  thread_local int current = -1;
  if (current != gpu.index && !cudaSetDevice(gpu.index)) current = gpu.index;
  return gpu;
}

const char* open(int index, void** device) {
  int major = 0, minor = 0;
  if (const char* why = problem(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index)))
    return why;
  if (const char* why = problem(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index)))
    return why;
  if (major < 8)
    return say("the GPU has compute capability " + std::to_string(major) + "." + std::to_string(minor) +
               ", at least 8.0 is needed");
  auto* gpu = new Gpu{.index = index};  // as long as the process
  *device = gpu;
  if (const char* why = problem(cudaStreamCreateWithFlags(&use(gpu).stream, cudaStreamNonBlocking)))
    return why;
  void *position = nullptr, *fault = nullptr;
  if (const char* why = problem(cudaMalloc(&position, sizeof(*gpu->bad_position)))) return why;
  if (const char* why = problem(cudaHostAlloc(&fault, sizeof(Fault), cudaHostAllocMapped))) return why;
  gpu->bad_position = static_cast<unsigned long long*>(position);
  gpu->fault = new (fault) Fault;
  return problem(cudaMemsetAsync(position, 0xff, sizeof(*gpu->bad_position), gpu->stream));  // none
}

const char* allocate(void* device, size_t bytes, void** out) {
  use(device);
  const cudaError_t error = cudaMalloc(out, bytes);
  if (!error) return nullptr;
  *out = nullptr;
  cudaGetLastError();  // being out of memory is no fault of the next call
  return problem(error);
}
void release(void* device, void* p, size_t) {
  use(device);
  cudaFree(p);
}
size_t available(void* device) {
  use(device);
  size_t left = 0, total = 0;
  return cudaMemGetInfo(&left, &total) ? 0 : left;
}

// Of all streams: memory may come from another library, or go to one.
const char* synchronize(void* device) {
  use(device);
  return problem(cudaDeviceSynchronize());
}

// The caller may free or read the host's side at once, so these two wait.
const char* copy(void* device, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaStream_t stream = use(device).stream;
  if (const char* why = problem(cudaMemcpyAsync(to, from, bytes, kind, stream))) return why;
  return problem(cudaStreamSynchronize(stream));
}
const char* copy_in(void* device, void* to, const void* host, size_t bytes) {
  return copy(device, to, host, bytes, cudaMemcpyHostToDevice);
}
const char* copy_out(void* device, void* host, const void* from, size_t bytes) {
  return copy(device, host, from, bytes, cudaMemcpyDeviceToHost);
}
const char* copy_within(void* device, void* to, const void* from, size_t bytes) {
  return problem(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, use(device).stream));
}
const char* fill_zero(void* device, void* to, size_t bytes) {
  return problem(cudaMemsetAsync(to, 0, bytes, use(device).stream));
}

// A kernel writes `error` last, and never over one that is there.
Fault take_fault(void* device) {
  Fault& noted = *static_cast<Gpu*>(device)->fault;
  const std::atomic_ref error(noted.error);
  if (error.load(std::memory_order_acquire) == DataError::none) return {};
  const Fault fault = noted;
  error.store(DataError::none, std::memory_order_release);
  return fault;
}

constexpr PluginDevice kDevice = {
    .version = kPluginVersion,
    .interface = plugin_interface(),
    .name = "cuda",
    .dlpack = 2,
    .count = count,
    .open = open,
    .allocate = allocate,
    .release = release,
    .available = available,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .fill_zero = fill_zero,
    .synchronize = synchronize,
    .take_fault = take_fault,
    .kernels = kKernels.data(),
};

}  // namespace

const Gpu& gpu_of(const KernelArgs& args) { return use(args.device); }

const char* problem(cudaError_t error) { return error ? say(cudaGetErrorString(error)) : nullptr; }

}  // namespace plmcore::cuda

extern "C" __attribute__((visibility("default"))) const plmcore::PluginDevice* plmcore_plugin() {
  return &plmcore::cuda::kDevice;
}
