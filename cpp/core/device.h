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
  virtual const char* name() const = 0;  // "cpu", "cuda", "cuda:1"
  virtual void copy_in(void* dst, const void* host, size_t bytes) = 0;
  virtual void copy_out(void* host, const void* src, size_t bytes) = 0;  // waits
  virtual void copy_within(void* dst, const void* src, size_t bytes) = 0;
  virtual void fill_zero(void* dst, size_t bytes) = 0;
  virtual void synchronize() {}
  virtual uint64_t waits() const { return 0; }  // how often the host has waited for it
  // Computes op `id` of ops.def: takes the memory that its kernel needs beside the outputs, and runs it.
  // DeviceError "not on this device yet" where it has no kernel.
  virtual void compute(int id, const char* op, KernelArgs& args);
  virtual bool has_kernel(int id) const = 0;
  virtual bool is_cpu() const { return false; }
  virtual CachingAllocator& allocator() = 0;

  struct Place {  // of its memory, as DLPack says it
    int32_t type, index;
  };
  virtual Place dlpack() const = 0;

  // ---- other layouts of a block's values, which a device may keep below `compute` ----

  // Inputs of op `id` that are read in whatever layout there is: they come with their storage, and perhaps
  // without plain values. A mask as in OpDef.
  virtual uint64_t any_layout(int) const { return 0; }
  virtual void* lay_out(Storage&) { return nullptr; }  // plain values of a block that has none yet
  virtual void keep_layouts(Storage&) {}    // allowed: the block's values change through ops alone
  virtual void forget_layouts(Storage&) {}  // its values are about to change

 protected:
  virtual Workspace workspace(int id, const KernelArgs& args) const = 0;
  virtual void run(int id, const char* op, const KernelArgs& args) = 0;
  // Kernels split their workspace by worker; 1 where the device does not use the pool.
  virtual int workers() const { return 1; }
};

Device* device_of_dlpack(Device::Place place);  // null where none of that kind can be used

}  // namespace plmcore
