#include "core/fork.h"

#include <pthread.h>

#include <vector>

namespace plmcore {

namespace {
struct Held {
  std::mutex adding;
  std::vector<std::mutex*> list;
};
Held& held() {
  static Held* h = new Held;
  return *h;
}
void before() {
  held().adding.lock();
  for (std::mutex* m : held().list) m->lock();
}
void after() {
  for (std::mutex* m : held().list) m->unlock();
  held().adding.unlock();
}
}  // namespace

void hold_over_fork(std::mutex& mutex) {
  static const int registered = pthread_atfork(before, after, after);
  (void)registered;
  std::lock_guard lock(held().adding);
  held().list.push_back(&mutex);
}

}  // namespace plmcore
