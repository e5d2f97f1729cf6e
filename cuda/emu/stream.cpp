#include "emu/stream.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "emu/block.h"
#include "emu/memory.h"
#include "emu/options.h"

namespace plmcore::emu {

namespace {

struct Stream {
  struct Task {
    std::function<void()> work;
    std::function<bool()> reached;  // when set, the task is a wait
  };
  std::deque<Task> tasks;

  // Does the first task; false when there is none or it must wait. A task that fails is gone: the device goes
  // on.
  bool step() {
    if (tasks.empty()) return false;
    if (tasks.front().reached) {
      if (!tasks.front().reached()) return false;
      tasks.pop_front();
      return true;
    }
    const auto work = std::move(tasks.front().work);
    tasks.pop_front();
    work();
    return true;
  }
};

// The first is the default stream.
std::vector<std::unique_ptr<Stream>>& streams() {
  static auto* all = [] {
    auto* list = new std::vector<std::unique_ptr<Stream>>;
    list->push_back(std::make_unique<Stream>());
    return list;
  }();
  return *all;
}
Stream& named(cudaStream_t stream) {
  if (!stream) return *streams()[0];
  for (const auto& s : streams())
    if (reinterpret_cast<cudaStream_t>(s.get()) == stream) return *s;
  fail("no such stream");
}

bool step_another(const Stream& than) {
  for (const auto& s : streams())
    if (s.get() != &than && s->step()) return true;
  return false;
}

std::string kernel_name(std::string_view pretty) {
  constexpr std::string_view key = "kernel = ";
  const size_t at = pretty.find(key);
  if (at == std::string_view::npos) return std::string(pretty);
  const std::string_view rest = pretty.substr(at + key.size());
  return std::string(rest.substr(0, rest.find_first_of(";]")));
}

thread_local std::string last_failure;

}  // namespace

std::recursive_mutex& device_mutex() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  if (options().async) {
    named(stream).tasks.push_back({std::move(work), {}});
    return;
  }
  const DeviceTurn turn;
  work();
}
void enqueue_wait(cudaStream_t stream, std::function<bool()> reached) {
  if (options().async) named(stream).tasks.push_back({{}, std::move(reached)});
}

void drain(cudaStream_t stream) {
  Stream& s = named(stream);
  const DeviceTurn turn;
  while (!s.tasks.empty())
    if (!s.step() && !step_another(s)) fail("a stream waits for an event that nothing will reach");
}
void drain_all() {
  const DeviceTurn turn;
  for (;;) {
    std::vector<Stream*> busy;
    for (const auto& s : streams())
      if (!s->tasks.empty()) busy.push_back(s.get());
    if (busy.empty()) return;
    std::rotate(busy.begin(), busy.begin() + random_bits() % busy.size(), busy.end());
    if (std::none_of(busy.begin(), busy.end(), [](Stream* s) { return s->step(); }))
      fail("every stream waits for an event that nothing will reach");
  }
}

cudaStream_t new_stream() {
  streams().push_back(std::make_unique<Stream>());
  return reinterpret_cast<cudaStream_t>(streams().back().get());
}
void delete_stream(cudaStream_t stream) {
  drain(stream);
  std::erase_if(streams(), [&](const auto& s) { return reinterpret_cast<cudaStream_t>(s.get()) == stream; });
}

cudaError_t guarded(const std::function<void()>& call) {
  const std::lock_guard lock(device_mutex());
  try {
    call();
    return cudaSuccess;
  } catch (const Failure& f) {
    last_failure = "the emulator found a fault: " + f.text;
    return cudaErrorLaunchFailure;
  }
}

cudaError_t launch(const char* name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                   std::initializer_list<const void*> addresses, std::function<void()> body) {
  return guarded([&] {
    for (const void* p : addresses)
      if (p && !reachable(p)) fail("%s is given the host's memory", kernel_name(name).c_str());
    enqueue(stream, [=] { run_grid(kernel_name(name).c_str(), grid, block, shared, body); });
  });
}

}  // namespace plmcore::emu

extern "C" const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorLaunchFailure: return plmcore::emu::last_failure.c_str();
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidValue: return "invalid argument";
    default: return "unspecified error";
  }
}
