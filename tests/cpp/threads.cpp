#include "plmcore/threads.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "plmcore/error.h"
#include "test.h"

using namespace plmcore;

namespace {
// The sum of 0..n-1 over the pool; also that every task ran exactly once, on a worker below the limit.
int64_t sum_over_pool(int64_t n, int workers = num_threads()) {
  std::vector<std::atomic<int>> ran(static_cast<size_t>(n));
  std::atomic<int64_t> sum{0};
  parallel_for(n, [&](int64_t t, int worker) {
    CHECK(worker >= 0 && worker < workers);
    ran[static_cast<size_t>(t)].fetch_add(1);
    sum += t;
  });
  for (auto& r : ran) CHECK(r == 1);
  return sum;
}
struct Threads {  // sets the number for a test
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};
}  // namespace

TEST(pool_runs_every_task_once) {
  for (int threads : {1, 2, 3, 8}) {
    const Threads use(threads);
    for (int64_t n : {0, 1, 2, 7, 1000}) CHECK_EQ(sum_over_pool(n), n * (n - 1) / 2);
  }
}

TEST(pool_passes_on_the_first_error) {
  const Threads use(4);
  for (int k = 0; k < 50; ++k) {
    CHECK_THROWS(IndexError, "task 3",
                 (parallel_for(100,
                               [](int64_t t, int) {
                                 if (t == 3) fail<IndexError>("task ", t);
                               }),
                  0));
    CHECK_EQ(sum_over_pool(100), 4950);
  }
}

TEST(pool_nests) {
  const Threads use(3);
  std::atomic<int> count{0};
  parallel_for(10, [&](int64_t, int outer) {
    parallel_for(10, [&](int64_t, int inner) {
      CHECK(inner == outer);
      ++count;
    });
  });
  CHECK_EQ(count.load(), 100);
}

TEST(pool_serves_several_threads) {
  const Threads use(2);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int k = 0; k < 200; ++k) wrong += sum_over_pool(64, 3) != 2016;
    });
  for (int k = 0; k < 20; ++k) set_num_threads(1 + k % 3);
  for (auto& t : callers) t.join();
  CHECK_EQ(wrong.load(), 0);
}

TEST(pool_works_in_a_forked_child) {
  const Threads use(3);
  CHECK_EQ(sum_over_pool(100), 4950);
  for (int k = 0; k < 5; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a hang is a failure
      bool ok = false;
      try {
        ok = num_threads() == 3 && sum_over_pool(1000) == 499500;
      } catch (...) {}
      _exit(ok ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK_EQ(sum_over_pool(100), 4950);
  }
}

TEST(pool_worker_limit) {
  const Threads use(8);
  const WorkerLimit limit(2);
  std::atomic<int> highest{0};
  parallel_for(1000, [&](int64_t, int worker) {
    int seen = highest;
    while (worker > seen && !highest.compare_exchange_weak(seen, worker)) {}
  });
  CHECK(highest < 2);
}

TEST(pool_refuses_absurd_sizes) {
  CHECK_THROWS(ValueError, "from 1 to 256, got 0", (set_num_threads(0), 0));
  CHECK_THROWS(ValueError, "got 257", (set_num_threads(257), 0));
  CHECK_THROWS(ValueError, "inside a parallel task",
               (parallel_for(4, [](int64_t, int) { set_num_threads(2); }), 0));
}
