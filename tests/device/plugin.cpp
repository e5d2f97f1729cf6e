// Devices "test" and "test:1": a plug-in whose kernels are the CPU's, for tests of everything above kernels.
//
// - The host cannot touch its memory. All blocks lie in one range of addresses without any permission;
// kernels
//   and copies use a second mapping of the same pages, at a fixed distance. An access by the host ends the
//   process with a line that names the tensor.
// - It runs behind the caller. Kernels, copies into it and fills wait in a queue until somebody reads a value
//   or synchronizes, so that what a call borrowed from the host is gone by then, and errors come late.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/plugin.h"
#include "ops/op.h"

namespace plmcore::test_device {

namespace {

#ifndef TEST_NAME  // a test makes plug-ins that do not fit
#define TEST_NAME "test"
#endif
#ifndef TEST_VERSION
#define TEST_VERSION kPluginVersion
#endif

constexpr size_t kBytes = size_t{16} << 30;  // of addresses; pages come with use
constexpr int kDevices = 2;
constexpr size_t kQueue = 512;  // calls; a longer one is worked off

thread_local std::string t_text;
const char* say(std::string text) {
  t_text = std::move(text);
  return t_text.c_str();
}

class TestDevice {
 public:
  explicit TestDevice(int index) : index_(index) {
    const int file = memfd_create("plmcore-test-device", 0);
    if (file < 0 || ftruncate(file, kBytes) != 0) return;
    const auto map = [&](int rights) {
      return static_cast<char*>(mmap(nullptr, kBytes, rights, MAP_SHARED | MAP_NORESERVE, file, 0));
    };
    base_ = map(PROT_NONE);
    alias_ = map(PROT_READ | PROT_WRITE);
    close(file);
  }
  bool opened() const { return base_ && base_ != MAP_FAILED && alias_ != MAP_FAILED; }

  // ---- memory ----

  void* allocate(size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes = (bytes + 63) / 64 * 64;
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (it->second == bytes) {
        char* p = it->first;
        free_.erase(it);
        return p;
      }
    if (used_ + bytes > kBytes) return nullptr;
    char* p = base_ + used_;
    used_ += bytes;
    return p;
  }
  void release(void* p, size_t bytes) {
    const std::lock_guard lock(mutex_);
    work_off();
    free_[static_cast<char*>(p)] = (bytes + 63) / 64 * 64;
  }
  size_t available() {
    const std::lock_guard lock(mutex_);
    return kBytes - used_;
  }
  bool holds(const void* p) const { return p >= base_ && p < base_ + kBytes; }

  // ---- work ----

  const char* enqueue(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    if (queue_.size() >= kQueue) work_off();
    return nullptr;
  }
  const char* wait() {
    const std::lock_guard lock(mutex_);
    work_off();
    if (failure_.empty()) return nullptr;
    const std::string failure = std::exchange(failure_, "");
    return say(failure);
  }
  Fault take_fault() {
    const std::lock_guard lock(mutex_);
    return std::exchange(fault_, {});
  }

  char* inside(const void* p) const { return alias_ + (static_cast<const char*>(p) - base_); }
  const char* launch(int id, const KernelArgs& args);
  void name(const void* p, size_t bytes, std::string text) {
    names_[static_cast<const char*>(p)] = {bytes, std::move(text)};
  }
  std::string named(const void* p) const {
    auto it = names_.upper_bound(static_cast<const char*>(p));
    if (it != names_.begin() && (--it, p < it->first + it->second.first)) return it->second.second;
    return "memory that nothing was written to";
  }
  int index() const { return index_; }

 private:
  void work_off() {
    for (const auto& work : std::exchange(queue_, {})) {
      try {
        work();
      } catch (const FaultCarrier& e) {
        if (fault_.error == DataError::none) fault_ = e.fault;
        const OpDef& op = *all_ops()[e.fault.op];
        if (!(op.extra.meets >> static_cast<int>(e.fault.error) & 1))
          failure_ = std::string(op.name) + " met an error in its data that its definition does not name";
      } catch (const std::exception& e) {
        if (failure_.empty()) failure_ = e.what();
      }
    }
  }

  const int index_;
  char *base_ = nullptr, *alias_ = nullptr;
  std::mutex mutex_;
  size_t used_ = 0;
  std::map<char*, size_t> free_;
  std::map<const char*, std::pair<size_t, std::string>> names_;  // what lies where
  std::vector<std::function<void()>> queue_;
  Fault fault_;
  std::string failure_;
};

TestDevice* g_devices[kDevices];

// ---- kernels ----

std::string described(const View& v, const char* op) {
  Shape shape;
  for (int i = 0; i < v.rank; ++i) shape.push_back(v.size[i]);
  std::string text = "the tensor ";
  append(text, v.dtype);
  append(text, shape);
  return text + " that " + op + " wrote";
}

// What a queued call keeps of its arguments: the host's own copies are gone when it runs.
struct Call {
  std::vector<View> in, out;
  std::vector<Attr> attrs;
  std::vector<std::vector<char>> host;
  KernelArgs args;
};

const char* TestDevice::launch(int id, const KernelArgs& args) {
  const OpDef& op = *all_ops()[id];
  auto call = std::make_shared<Call>();
  call->attrs.assign(args.attrs, args.attrs + args.n_attrs);
  for (int i = 0; i < args.n_in; ++i) {
    View v = args.in[i];
    if (v.data && in_mask(op.extra.host_in, static_cast<size_t>(i))) {
      const char* from = v.as<char>();
      call->host.emplace_back(from, from + static_cast<size_t>(v.numel) * size_of(v.dtype));
      v.data = call->host.back().data();
    } else if (v.data && !holds(v.data) && v.numel) {
      return say("input " + std::to_string(i) + " is not in the device's memory");
    } else if (v.data) {
      v.data = inside(v.data);
    }
    call->in.push_back(v);
  }
  for (int k = 0; k < args.n_out; ++k) {
    View v = args.out[k];
    const std::lock_guard lock(mutex_);
    if (v.data) name(v.data, static_cast<size_t>(v.numel) * size_of(v.dtype), described(v, op.name));
    if (v.data) v.data = inside(v.data);
    call->out.push_back(v);
  }
  return enqueue([id, call, name = op.name] {
    KernelArgs args;
    args.in = call->in.data();
    args.out = call->out.data();
    args.attrs = call->attrs.data();
    args.n_in = static_cast<int32_t>(call->in.size());
    args.n_out = static_cast<int32_t>(call->out.size());
    args.n_attrs = static_cast<int32_t>(call->attrs.size());
    cpu().compute(id, name, args);  // with workspace of its own
  });
}

template <int id>
const char* run(const KernelArgs& args) {
  return static_cast<TestDevice*>(args.device)->launch(id, args);
}
template <int... ids>
std::array<PluginKernelDef, ops::kCount> kernels(std::integer_sequence<int, ids...>) {
  return {PluginKernelDef{cpu().has_kernel(ids) ? run<ids> : nullptr, nullptr}...};
}

// ---- the plug-in ----

TestDevice& of(void* device) { return *static_cast<TestDevice*>(device); }

// An access to the device's memory by the host.
void refuse(int, siginfo_t* info, void*) {
  for (const TestDevice* device : g_devices)
    if (device && device->holds(info->si_addr))
      std::fprintf(stderr, "device test:%d: the host touched %s\n", device->index(),
                   device->named(info->si_addr).c_str());
  signal(SIGSEGV, SIG_DFL);
}

const char* count(int* out) {
  *out = kDevices;
  return nullptr;
}
const char* open(int index, void** device) {
  auto* made = g_devices[index] = new TestDevice(index);
  if (!made->opened()) return "its memory cannot be mapped";
  struct sigaction action = {};
  action.sa_sigaction = refuse;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  *device = made;
  return nullptr;
}
const char* allocate(void* device, size_t bytes, void** out) {
  *out = of(device).allocate(bytes);
  return *out ? nullptr : "there is no memory left";
}
void release(void* device, void* p, size_t bytes) { of(device).release(p, bytes); }
size_t available(void* device) { return of(device).available(); }

const char* copy_in(void* device, void* to, const void* host, size_t bytes) {
  const char* from = static_cast<const char*>(host);
  of(device).name(to, bytes, "a tensor of " + std::to_string(bytes) + " bytes that the host wrote");
  return of(device).enqueue([to = of(device).inside(to), kept = std::vector<char>(from, from + bytes)] {
    std::memcpy(to, kept.data(), kept.size());
  });
}
const char* copy_out(void* device, void* host, const void* from, size_t bytes) {
  if (const char* why = of(device).wait()) return why;
  std::memcpy(host, of(device).inside(from), bytes);
  return nullptr;
}
const char* copy_within(void* device, void* to, const void* from, size_t bytes) {
  TestDevice& d = of(device);
  return d.enqueue([to = d.inside(to), from = d.inside(from), bytes] { std::memcpy(to, from, bytes); });
}
const char* fill_zero(void* device, void* to, size_t bytes) {
  return of(device).enqueue([to = of(device).inside(to), bytes] { std::memset(to, 0, bytes); });
}

}  // namespace

}  // namespace plmcore::test_device

extern "C" const plmcore::PluginDevice* plmcore_plugin() {
  using namespace plmcore;
  using namespace plmcore::test_device;
  static const auto table = kernels(std::make_integer_sequence<int, ops::kCount>());
  static const PluginDevice device = {
      .version = TEST_VERSION,
      .interface = plugin_interface(),
      .name = TEST_NAME,
      .dlpack = 12,  // a device that DLPack has no number for
      .count = count,
      .open = open,
      .allocate = allocate,
      .release = release,
      .available = available,
      .copy_in = copy_in,
      .copy_out = copy_out,
      .copy_within = copy_within,
      .fill_zero = fill_zero,
      .synchronize = [](void* d) { return of(d).wait(); },
      .take_fault = [](void* d) { return of(d).take_fault(); },
      .kernels = table.data(),
  };
  return &device;
}
