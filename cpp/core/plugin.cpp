#include "core/plugin.h"

#include <dlfcn.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device.h"

namespace plmcore {

namespace {

// "cuda", "PLUGIN" -> what the environment says in PLMCORE_CUDA_PLUGIN
const char* setting(const std::string& kind, const char* what) {
  std::string name = "PLMCORE_" + kind + "_" + what;
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return std::getenv(name.c_str());
}

class PluginMemory final : public CachingAllocator::Source {
 public:
  PluginMemory(const PluginDevice& p, void* device) : plugin_(p), device_(device) {}
  void* get(size_t bytes) override {
    void* out = nullptr;
    plugin_.allocate(device_, bytes, &out);
    return out;
  }
  void put(void* p, size_t bytes) override { plugin_.release(device_, p, bytes); }
  size_t available() override { return plugin_.available(device_); }

 private:
  const PluginDevice& plugin_;
  void* device_;
};

class PluggedDevice final : public Device {
 public:
  PluggedDevice(const PluginDevice& p, int index, void* handle)
      : plugin_(p),
        index_(index),
        handle_(handle),
        name_(index ? std::string(p.name) + ":" + std::to_string(index) : p.name),
        memory_(p, handle),
        allocator_(name_.c_str(), memory_) {
    const char* wish = setting(p.name, "SYNC");
    waits_at_once_ = wish && std::string_view(wish) == "1";
  }
  const char* name() const override { return name_.c_str(); }
  Place dlpack() const override { return {plugin_.dlpack, index_}; }
  CachingAllocator& allocator() override { return allocator_; }

  void copy_in(void* d, const void* s, size_t n) override { ok(plugin_.copy_in(handle_, d, s, n), "copy"); }
  void copy_within(void* d, const void* s, size_t n) override {
    ok(plugin_.copy_within(handle_, d, s, n), "copy");
  }
  void fill_zero(void* d, size_t n) override { ok(plugin_.fill_zero(handle_, d, n), "fill"); }
  void copy_out(void* d, const void* s, size_t n) override {
    ok(plugin_.copy_out(handle_, d, s, n), "copy");
    waited();
  }
  void synchronize() override {
    ok(plugin_.synchronize(handle_), "synchronize");
    waited();
  }
  uint64_t waits() const override { return waits_.load(); }

  bool has_kernel(int id) const override { return plugin_.kernels[id].run != nullptr; }
  void compute(int id, const char* op, KernelArgs& args) override {
    check<DeviceError>(has_kernel(id), op, ": not on this device yet (", name(),
                       "); move its inputs with .to(\"cpu\")");
    args.device = handle_;
    Device::compute(id, op, args);
  }

 protected:
  Workspace workspace(int id, const KernelArgs& args) const override {
    const auto need = plugin_.kernels[id].workspace;
    return need ? need(args) : Workspace();
  }
  void run(int id, const char* op, const KernelArgs& args) override {
    ok(plugin_.kernels[id].run(args), op);
    if (waits_at_once_) synchronize();
  }

 private:
  void ok(const char* error, const char* what) const {
    check<DeviceError>(!error, name(), ": ", what, " failed: ", error ? error : "");
  }
  void waited() {
    waits_.fetch_add(1);
    if (!plugin_.take_fault) return;
    if (const Fault fault = plugin_.take_fault(handle_); fault.error != DataError::none) raise(fault);
  }

  const PluginDevice& plugin_;
  const int index_;
  void* const handle_;
  const std::string name_;
  PluginMemory memory_;
  CachingAllocator allocator_;
  bool waits_at_once_;
  std::atomic<uint64_t> waits_{0};
};

// A kind of device: its library, and those of it that are in use.
struct Plugin {
  const PluginDevice* functions = nullptr;
  std::string problem;  // why there are none
  std::vector<Device*> devices;
  std::vector<std::string> problems;  // of each
};

// Plug-ins that are published, and how they are installed.
constexpr std::pair<std::string_view, const char*> kPublished[] = {{"cuda", "pip install 'plmcore[cuda13]'"}};

std::string missing(const std::string& kind, const char* given, const char* why) {
  const std::string fault = "the " + kind + " plug-in cannot be opened (" + why + ")";
  for (const auto& [name, command] : kPublished)
    if (kind == name) return fault + "; install it with: " + command;
  if (given) return fault;
  return "there is no device '" + kind +
         "': use \"cpu\", \"cuda\" or \"cuda:1\"; the plug-in of another is named by the environment "
         "variable "
         "PLMCORE_NAME_PLUGIN";
}

Plugin open_plugin(const std::string& kind) {
  const char* given = setting(kind, "PLUGIN");
  const std::string path = given ? given : plugin_directory() + "/libplmcore_" + kind + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return {nullptr, missing(kind, given, why ? why : path.c_str()), {}, {}};
  }
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginEntry));
  const PluginDevice* plugin = entry ? entry() : nullptr;
  if (!plugin) return {nullptr, path + " is not a plmcore plug-in", {}, {}};
  if (plugin->version != kPluginVersion || plugin->interface != plugin_interface())
    return {nullptr,
            path + " was built for another version of plmcore; install the same version of both",
            {},
            {}};
  if (kind != plugin->name)
    return {
        nullptr, path + " is a plug-in for the device '" + plugin->name + "', not '" + kind + "'", {}, {}};
  int count = 0;
  if (const char* error = plugin->count(&count))
    return {nullptr, "the " + kind + " device cannot be used: " + error, {}, {}};
  const auto n = static_cast<size_t>(count);
  return {plugin, {}, std::vector<Device*>(n), std::vector<std::string>(n)};
}

struct Opened {
  Device* device = nullptr;
  std::string problem;
};

std::mutex g_mutex;
std::map<std::string, Plugin, std::less<>>& plugins() {
  static auto* all = new std::map<std::string, Plugin, std::less<>>;
  return *all;
}

Opened open_device(const std::string& kind, int index) {
  const std::lock_guard lock(g_mutex);
  auto it = plugins().find(kind);
  if (it == plugins().end()) it = plugins().emplace(kind, open_plugin(kind)).first;
  Plugin& plugin = it->second;
  if (!plugin.functions) return {nullptr, plugin.problem};
  if (static_cast<size_t>(index) >= plugin.devices.size())
    return {nullptr, "there is no device '" + kind + ":" + std::to_string(index) +
                         "': " + std::to_string(plugin.devices.size()) + " can be used here, counted from 0"};
  Device*& device = plugin.devices[static_cast<size_t>(index)];
  std::string& problem = plugin.problems[static_cast<size_t>(index)];
  if (!device && problem.empty()) {
    void* handle = nullptr;
    if (const char* error = plugin.functions->open(index, &handle))
      problem = "the " + kind + " device cannot be used: " + error;
    else device = new PluggedDevice(*plugin.functions, index, handle);  // outlives every tensor
  }
  return {device, problem};
}

// "cuda:1" -> its kind and number
Opened opened(std::string_view name) {
  const size_t colon = name.find(':');
  const std::string kind(name.substr(0, colon));
  int index = 0;
  bool good = !kind.empty() && kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == kind.npos;
  if (colon != name.npos) {
    const char *begin = name.data() + colon + 1, *end = name.data() + name.size();
    const auto [last, error] = std::from_chars(begin, end, index);
    good = good && error == std::errc() && last == end && index >= 0;
  }
  if (!good)
    return {nullptr,
            "a device is named like \"cpu\", \"cuda\" or \"cuda:1\", got '" + std::string(name) + "'"};
  if (kind == "cpu") {
    if (index == 0) return {&cpu(), {}};
    return {nullptr, "there is no device '" + std::string(name) + "': the CPU is one device, \"cpu\""};
  }
  return open_device(kind, index);
}

}  // namespace

std::string plugin_directory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&plugin_directory), &info) || !info.dli_fname) return ".";
  const std::string path = info.dli_fname;
  return path.substr(0, path.find_last_of('/'));
}

std::string plugin_problem(std::string_view device) { return opened(device).problem; }

Device& device_from_name(std::string_view name) {
  const Opened o = opened(name);
  check<DeviceError>(o.device != nullptr, o.problem);
  return *o.device;
}

Device* device_of_dlpack(Device::Place place) {
  constexpr int32_t kCuda = 2;
  if (place.type == kCuda) return opened("cuda:" + std::to_string(place.index)).device;
  std::string kind;
  {
    const std::lock_guard lock(g_mutex);
    for (const auto& [name, plugin] : plugins())
      if (plugin.functions && plugin.functions->dlpack == place.type) kind = name;
  }
  return kind.empty() ? nullptr : opened(kind + ":" + std::to_string(place.index)).device;
}

}  // namespace plmcore
