// Workers spin for a moment after a job, then sleep. Tasks are claimed one by one from a shared counter, so
// which worker runs a task is chance; what a task computes must not depend on it.
#include "plmcore/threads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "plmcore/error.h"

namespace plmcore {
namespace {

constexpr int kMaxThreads = 256;
constexpr auto kSpin = std::chrono::microseconds(60);
constexpr int kPauses = 2000;  // of the caller before it yields: some tens of microseconds

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

thread_local int t_worker = -1;                 // this thread's number inside a job, -1 outside
thread_local int t_worker_limit = kMaxThreads;  // set by WorkerLimit

struct Job {
  int64_t tasks;
  void (*body)(void*, int64_t, int);
  void* context;
  int workers;  // those beyond have no workspace in this call and stay out
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  void work(int worker) {
    if (worker >= workers) return;
    t_worker = worker;
    for (int64_t t; (t = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      try {
        body(context, t, worker);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
        next.store(tasks);
      }
    }
    t_worker = -1;
  }
};

class Pool {
 public:
  explicit Pool(int threads) : size_(threads) {}

  void run(Job& job) {
    start();
    job_ = &job;
    pending_.store(started_, std::memory_order_relaxed);
    {
      std::lock_guard lock(mutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    if (sleepers_.load() > 0) wake_.notify_all();
    job.work(0);
    // On a busy machine a worker may have lost its processor: give it ours.
    for (int k = 0; pending_.load(std::memory_order_acquire) > 0; ++k)
      if (k < kPauses) pause();
      else sched_yield();
  }

  int size() const { return size_; }

  // Ends the workers; used when the number of threads changes.
  void stop() {
    Job none{0, nullptr, nullptr, kMaxThreads};
    stopping_ = true;
    run(none);
    for (int i = 0; i < started_; ++i) threads_[i].join();
  }

  std::mutex busy;  // one job at a time

 private:
  void start() {
    while (started_ < size_ - 1) {
      const int worker = started_ + 1;
      const uint64_t seen = generation_.load();
      threads_[started_] = std::thread([this, worker, seen] { loop(worker, seen); });
      ++started_;
    }
  }
  void loop(int worker, uint64_t seen) {
    for (;;) {
      wait_for_job(seen);
      ++seen;
      const bool last = stopping_;
      job_->work(worker);
      pending_.fetch_sub(1, std::memory_order_release);
      if (last) return;
    }
  }
  void wait_for_job(uint64_t seen) {
    const auto give_up = std::chrono::steady_clock::now() + kSpin;
    for (int k = 0; generation_.load(std::memory_order_acquire) == seen; ++k) {
      pause();
      if (k % 64 == 63 && std::chrono::steady_clock::now() > give_up) {
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
        sleepers_.fetch_sub(1);
        return;
      }
    }
  }

  const int size_;
  int started_ = 0;
  bool stopping_ = false;
  Job* job_ = nullptr;
  std::thread threads_[kMaxThreads];
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> pending_{0}, sleepers_{0};
};

// The pool is never destroyed: a worker may sleep on its condition variable when the process exits.
std::atomic<Pool*> g_pool{nullptr};
std::mutex g_pool_mutex;

int default_threads() {
  if (const char* text = std::getenv("PLMCORE_NUM_THREADS")) {
    char* end;
    const long n = std::strtol(text, &end, 10);
    check<ValueError>(end != text && *end == 0 && n >= 1 && n <= kMaxThreads,
                      "PLMCORE_NUM_THREADS must be a number from 1 to ", kMaxThreads, ", got '", text, "'");
    return static_cast<int>(n);
  }
  cpu_set_t set;
  const int n = sched_getaffinity(0, sizeof set, &set) == 0
                    ? CPU_COUNT(&set)
                    : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(n, 1, kMaxThreads);
}

// In a forked child only the forking thread lives on: forget the parent's pool (its threads do not exist
// here).
void after_fork_in_child() {
  Pool* old = g_pool.load();
  g_pool.store(old ? new Pool(old->size()) : nullptr);
  new (&g_pool_mutex) std::mutex;
  t_worker = -1;
}

Pool& pool() {
  if (Pool* p = g_pool.load(std::memory_order_acquire)) return *p;
  std::lock_guard lock(g_pool_mutex);
  if (!g_pool.load()) {
    static const int registered = pthread_atfork(nullptr, nullptr, after_fork_in_child);
    (void)registered;
    g_pool.store(new Pool(default_threads()));
  }
  return *g_pool.load();
}

}  // namespace

int num_threads() { return pool().size(); }

WorkerLimit::WorkerLimit(int workers) : before_(t_worker_limit) {
  t_worker_limit = std::min(before_, workers);
}
WorkerLimit::~WorkerLimit() { t_worker_limit = before_; }

void set_num_threads(int n) {
  check<ValueError>(n >= 1 && n <= kMaxThreads, "the number of threads must be from 1 to ", kMaxThreads,
                    ", got ", n);
  check<ValueError>(t_worker < 0, "set_num_threads cannot be called from inside a parallel task");
  Pool& old = pool();
  if (old.size() == n) return;
  std::lock_guard lock(g_pool_mutex);
  std::lock_guard busy(old.busy);
  old.stop();
  g_pool.store(new Pool(n));  // the old one stays allocated: another thread may be waiting on its `busy`
}

void run_tasks(int64_t tasks, void (*body)(void*, int64_t, int), void* context) {
  if (tasks <= 0) return;
  if (tasks == 1 || t_worker >= 0) {
    const int worker = t_worker < 0 ? 0 : t_worker;
    for (int64_t t = 0; t < tasks; ++t) body(context, t, worker);
    return;
  }
  Job job{tasks, body, context, t_worker_limit};
  Pool* p = &pool();
  if (p->size() == 1 || t_worker_limit == 1) {  // waits for nobody
    job.work(0);
  } else {
    std::unique_lock lock(p->busy);
    while (p != g_pool.load()) {  // the size was changed meanwhile
      lock.unlock();
      p = &pool();
      lock = std::unique_lock(p->busy);
    }
    p->run(job);
  }
  if (job.failed) std::rethrow_exception(job.error);
}

}  // namespace plmcore
