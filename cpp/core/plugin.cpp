#include "core/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "core/device.h"
#include "core/op_ids.h"

namespace plmcore {

namespace {

const PluginDevice* g_memory =
    nullptr;  // CachingAllocator::Source holds plain functions; there is one plug-in device

class PluggedDevice final : public Device {
 public:
  explicit PluggedDevice(const PluginDevice& p) : plugin_(p), allocator_(p.device, source(p)) {}
  const char* name() const override { return plugin_.device; }
  void copy_in(void* d, const void* s, size_t n) override { ok(plugin_.copy_in(d, s, n), "copy"); }
  void copy_out(void* d, const void* s, size_t n) override { ok(plugin_.copy_out(d, s, n), "copy"); }
  void copy_within(void* d, const void* s, size_t n) override { ok(plugin_.copy_within(d, s, n), "copy"); }
  void fill_zero(void* d, size_t n) override { ok(plugin_.fill_zero(d, n), "fill"); }
  void synchronize() override { ok(plugin_.synchronize(), "synchronize"); }
  bool has_kernel(int id) const override { return plugin_.kernels[id].run != nullptr; }
  CachingAllocator& allocator() override { return allocator_; }
  Workspace workspace(int id, const KernelArgs& args) const override {
    const auto need = plugin_.kernels[id].workspace;
    return need ? need(args) : Workspace();
  }
  void run(int id, const char* op, const KernelArgs& args) override {
    check<DeviceError>(has_kernel(id), op, ": not on this device yet (", name(),
                       "); move its inputs with .to(\"cpu\")");
    ok(plugin_.kernels[id].run(args), op);
  }

 private:
  void ok(const char* error, const char* what) const {
    check<DeviceError>(!error, name(), ": ", what, " failed: ", error ? error : "");
  }
  static CachingAllocator::Source source(const PluginDevice& p) {
    g_memory = &p;
    return {[](size_t n) {
              void* out = nullptr;
              g_memory->allocate(n, &out);
              return out;
            },
            [](void* q, size_t n) { g_memory->release(q, n); }, [] { return g_memory->available(); }};
  }

  const PluginDevice& plugin_;
  CachingAllocator allocator_;
};

struct Opened {
  Device* device = nullptr;
  std::string problem;
};

Opened open_plugin(const std::string& device) {
  std::string variable = "PLMCORE_" + device + "_PLUGIN";
  for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const char* given = std::getenv(variable.c_str());
  const std::string path = given ? given : plugin_directory() + "/libplmcore_" + device + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return {nullptr, "the " + device + " plug-in cannot be opened (" + (why ? why : path) +
                         "); install it with: pip install 'plmcore[" + device + "13]'"};
  }
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginEntry));
  const PluginDevice* plugin = entry ? entry() : nullptr;
  if (!plugin) return {nullptr, path + " is not a plmcore plug-in"};
  if (plugin->version != kPluginVersion || plugin->ops != ops::kCount)
    return {nullptr, path + " was built for another version of plmcore; install the same version of both"};
  if (const char* error = plugin->open())
    return {nullptr, "the " + device + " device cannot be used: " + error};
  return {new PluggedDevice(*plugin), {}};
}

const Opened& opened(std::string_view device) {
  static std::mutex mutex;
  static auto* devices = new std::map<std::string, Opened, std::less<>>;
  std::lock_guard lock(mutex);
  auto it = devices->find(device);
  if (it == devices->end())
    it = devices->emplace(std::string(device), open_plugin(std::string(device))).first;
  return it->second;
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
  if (name == "cpu") return cpu();
  check<DeviceError>(name == "cuda", "the device must be \"cpu\" or \"cuda\", got '", name, "'");
  const Opened& o = opened(name);
  check<DeviceError>(o.device != nullptr, o.problem);
  return *o.device;
}

}  // namespace plmcore
