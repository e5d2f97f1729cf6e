// The C entry of the plug-in: device memory, copies, and the table of kernels. plmcore opens this library on
// the first use of device "cuda" (cpp/core/plugin.h).
#include <array>
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

cudaStream_t g_stream = nullptr;
thread_local std::string t_text;

const char* say(std::string text) {
  t_text = std::move(text);
  return t_text.c_str();
}

template <const PluginKernelDef& kernel>
const char* run(const KernelArgs& args) {
#ifdef PLM_CUDA_EMU
  const emu::OpFence fence(stream_of(args), args);
#endif
  return kernel.run(args);
}
template <const PluginKernelDef& kernel>
Workspace workspace(const KernelArgs& args) {
  return kernel.workspace ? kernel.workspace(args) : Workspace();
}

// The places of the ops, and the kernels of those that have one here.
enum Op {
#define PLM_OP(name) op_##name,
#define PLM_OP_VIEW(name) PLM_OP(name)
#include "ops/ops.def"
#undef PLM_OP
#undef PLM_OP_VIEW
  kOps
};
constexpr std::array<PluginKernelDef, kOps> kKernels = [] {
  std::array<PluginKernelDef, kOps> table = {};
#define PLM_CUDA_KERNEL(name) table[op_##name] = {run<name##_kernel>, workspace<name##_kernel>};
#include "kernels/kernels.def"
#undef PLM_CUDA_KERNEL
  return table;
}();

const char* open() {
  int count = 0;
  if (const char* why = problem(cudaGetDeviceCount(&count)))
    return say(std::string("no GPU answers (") + why + "); it needs an NVIDIA GPU and its driver");
  if (count == 0) return "there is no NVIDIA GPU";
  int major = 0, minor = 0;
  if (const char* why = problem(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0)))
    return why;
  if (const char* why = problem(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0)))
    return why;
  if (major < 8)
    return say("the GPU has compute capability " + std::to_string(major) + "." + std::to_string(minor) +
               ", at least 8.0 is needed");
  return problem(cudaStreamCreateWithFlags(&g_stream, cudaStreamNonBlocking));
}

const char* allocate(size_t bytes, void** out) {
  const cudaError_t error = cudaMalloc(out, bytes);
  if (!error) return nullptr;
  *out = nullptr;
  cudaGetLastError();  // being out of memory is no fault of the next call
  return problem(error);
}
void release(void* p, size_t) { cudaFree(p); }
size_t available() {
  size_t left = 0, total = 0;
  return cudaMemGetInfo(&left, &total) ? 0 : left;
}

const char* synchronize() { return problem(cudaStreamSynchronize(g_stream)); }

// The caller may free or read the host's side at once, so these two wait.
const char* copy_in(void* to, const void* host, size_t bytes) {
  if (const char* why = problem(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, g_stream)))
    return why;
  return synchronize();
}
const char* copy_out(void* host, const void* from, size_t bytes) {
  if (const char* why = problem(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, g_stream)))
    return why;
  return synchronize();
}
const char* copy_within(void* to, const void* from, size_t bytes) {
  return problem(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, g_stream));
}
const char* fill_zero(void* to, size_t bytes) { return problem(cudaMemsetAsync(to, 0, bytes, g_stream)); }

constexpr PluginDevice kDevice = {
    .version = kPluginVersion,
    .ops = kOps,
    .device = "cuda",
    .open = open,
    .allocate = allocate,
    .release = release,
    .available = available,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .fill_zero = fill_zero,
    .synchronize = synchronize,
    .kernels = kKernels.data(),
};

}  // namespace

cudaStream_t stream_of(const KernelArgs& args) {
  return args.stream ? static_cast<cudaStream_t>(args.stream) : g_stream;
}

const char* problem(cudaError_t error) { return error ? say(cudaGetErrorString(error)) : nullptr; }

}  // namespace plmcore::cuda

extern "C" __attribute__((visibility("default"))) const plmcore::PluginDevice* plmcore_plugin() {
  return &plmcore::cuda::kDevice;
}
