// The thread pool. Its own threads, no OpenMP: it restarts by itself in a forked child.
#pragma once

#include <cstdint>
#include <type_traits>

namespace plmcore {

int num_threads();             // PLMCORE_NUM_THREADS, else the cores this process may use
void set_num_threads(int n);   // 1 .. 256

// Runs body(context, task, worker) once for each task in [0, tasks); worker is in [0, num_threads()). Returns
// when all are done; the first exception of a task is thrown here. A nested call runs its tasks on the
// calling thread.
void run_tasks(int64_t tasks, void (*body)(void* context, int64_t task, int worker), void* context);

// Keeps this thread's calls of run_tasks to workers below a number for its lifetime, at most as many as
// before: a kernel's workspace was sized for so many, and the pool may grow meanwhile. With 1 they run on
// this thread and wait for no other.
class WorkerLimit {
 public:
  explicit WorkerLimit(int workers);
  ~WorkerLimit();
  WorkerLimit(const WorkerLimit&) = delete;

 private:
  int before_;
};

template <class F>
void parallel_for(int64_t tasks, F&& f) {
  run_tasks(
      tasks,
      [](void* context, int64_t task, int worker) {
        (*static_cast<std::remove_reference_t<F>*>(context))(task, worker);
      },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace plmcore
