// Devices that arrive as plug-ins: a shared library with one C function, opened on first use of the device.
// docs/adding-a-device.md shows how one is made.
#pragma once

#include <string>
#include <string_view>

#include "core/fault.h"
#include "core/kernel_args.h"
#include "core/op_ids.h"

namespace plmcore {

inline constexpr int kPluginVersion = 4;  // raised with every change of this file

// What a plug-in and the library must agree on: the ops in their order, and the layout of what kernels get.
constexpr uint64_t plugin_interface() {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  const auto add = [&](uint64_t byte) { hash = (hash ^ byte) * 1099511628211ull; };
  for (const char* name : ops::kNames)
    for (const char* c = name;; ++c) {
      add(static_cast<unsigned char>(*c));
      if (!*c) break;
    }
  for (const size_t size : {sizeof(View), sizeof(Attr), sizeof(KernelArgs), sizeof(Fault)}) add(size);
  return hash;
}

// One kind of device, of which there may be several. Functions return nullptr on success, otherwise a
// sentence that stays valid until the next call on this thread. `device` is what `open` gave.
struct PluginDevice {
  int version;
  uint64_t interface;  // plugin_interface()
  const char* name;    // "cuda"
  int32_t dlpack;      // DLPack's number for its memory
  const char* (*count)(int* out);                 // how many there are; called once
  const char* (*open)(int index, void** device);  // called once for each that is used
  const char* (*allocate)(void* device, size_t bytes, void** out);  // *out stays null when memory is short
  void (*release)(void* device, void* p, size_t bytes);
  size_t (*available)(void* device);
  const char* (*copy_in)(void* device, void* dst, const void* host, size_t bytes);
  const char* (*copy_out)(void* device, void* host, const void* src, size_t bytes);
  const char* (*copy_within)(void* device, void* dst, const void* src, size_t bytes);
  const char* (*fill_zero)(void* device, void* dst, size_t bytes);
  const char* (*synchronize)(void* device);
  // The first error in data since the last call; asked after every wait. Null where no kernel can meet one.
  Fault (*take_fault)(void* device);
  const PluginKernelDef* kernels;  // by place in ops.def; without `run` where there is none yet
};

// The one exported name: const PluginDevice* plmcore_plugin().
using PluginEntry = const PluginDevice* (*)();
inline constexpr const char* kPluginEntry = "plmcore_plugin";

std::string plugin_directory();  // where the plug-ins are looked for: beside this library

// Why the device cannot be used, or an empty string when it can.
std::string plugin_problem(std::string_view device);

}  // namespace plmcore
