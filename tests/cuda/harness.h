// What the programs that test the emulator share: arrays on the device, and a count of what failed.
#pragma once

#include <cstdio>
#include <utility>
#include <vector>

#include "device/cuda.cuh"

namespace plmcore::cuda {

inline int failures = 0;
inline void expect(bool ok, const char* what) {
  if (!ok) ++failures;
  std::printf("%s %s\n", ok ? "ok" : "FAILED", what);
}

template <class T>
struct Array {
  explicit Array(size_t n, T value = T()) : Array(std::vector<T>(n, value)) {}
  explicit Array(std::vector<T> values) : host(std::move(values)) {
    cudaMalloc(reinterpret_cast<void**>(&device), host.size() * sizeof(T));
    cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  }
  ~Array() { cudaFree(device); }
  const std::vector<T>& read() {
    cudaMemcpy(host.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost);
    return host;
  }
  std::vector<T> host;
  T* device = nullptr;
};

template <class T, class F>
bool every(const std::vector<T>& v, F f) {
  for (size_t i = 0; i < v.size(); ++i)
    if (v[i] != f(static_cast<int>(i))) return false;
  return true;
}

}  // namespace plmcore::cuda
