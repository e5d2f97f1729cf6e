// Devices that arrive as plug-ins: a shared library with one C function, opened on first use of the device.
#pragma once

#include <string>
#include <string_view>

#include "core/kernel_args.h"

namespace plmcore {

inline constexpr int kPluginVersion = 3;  // raised with every change of this file or of kernel_args.h

// Functions return nullptr on success, otherwise a sentence that stays valid until the next call on this
// thread.
struct PluginDevice {
  int version;
  int ops;                                                // the plug-in's count of ops.def
  const char* device;                                     // "cuda"
  const char* (*open)();                                  // finds the hardware; called once
  const char* (*allocate)(size_t bytes, void** out);      // *out stays null when memory is short
  void (*release)(void* p, size_t bytes);
  size_t (*available)();
  const char* (*copy_in)(void* dst, const void* host, size_t bytes);
  const char* (*copy_out)(void* host, const void* src, size_t bytes);
  const char* (*copy_within)(void* dst, const void* src, size_t bytes);
  const char* (*fill_zero)(void* dst, size_t bytes);
  const char* (*synchronize)();
  const PluginKernelDef* kernels;  // by place in ops.def; without `run` where there is none yet
};

// The one exported name: const PluginDevice* plmcore_plugin().
using PluginEntry = const PluginDevice* (*)();
inline constexpr const char* kPluginEntry = "plmcore_plugin";

std::string plugin_directory();  // where the plug-ins are looked for: beside this library

// Why the device cannot be used, or an empty string when it can.
std::string plugin_problem(std::string_view device);

}  // namespace plmcore
