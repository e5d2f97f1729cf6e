// What a fork must not tear apart: the child has one thread, and locks that another one held would stay
// locked.
#pragma once

#include <mutex>

namespace plmcore {

// The forking thread takes this lock before the fork and gives it back after it, in parent and child. For
// locks under which no other lock is taken.
void hold_over_fork(std::mutex& mutex);

}  // namespace plmcore
