// Device: memory, copies and a kernel per op. The CPU is one; others arrive as plug-ins (core/plugin.h).
#pragma once

#include <cstddef>
#include <string>

#include "core/allocator.h"
#include "core/kernel_args.h"
#include "plmcore/tensor.h"

namespace plmcore {

class Device {
 public:
  virtual ~Device() = default;
  virtual const char* name() const = 0;
  virtual void copy_in(void* dst, const void* host, size_t bytes) = 0;
  virtual void copy_out(void* host, const void* src, size_t bytes) = 0;
  virtual void copy_within(void* dst, const void* src, size_t bytes) = 0;
  virtual void fill_zero(void* dst, size_t bytes) = 0;
  virtual void synchronize() {}
  // What the kernel of op `id` of ops.def needs beside its outputs; nothing where there is no kernel.
  virtual Workspace workspace(int id, const KernelArgs& args) const = 0;
  // Runs it; DeviceError "not on this device yet" where it has no kernel.
  virtual void run(int id, const char* op, const KernelArgs& args) = 0;
  virtual bool has_kernel(int id) const = 0;
  // Kernels split their workspace by worker; 1 where the device does not use the pool.
  virtual int workers() const { return 1; }
  virtual bool is_cpu() const { return false; }
  virtual CachingAllocator& allocator() = 0;
};

}  // namespace plmcore
