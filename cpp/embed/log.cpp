#include "embed/log.h"

#include <atomic>
#include <mutex>

namespace plmcore {

namespace {
std::mutex g_mutex;
std::atomic<bool> g_listens{false};
Log& listener() {
  static Log* log = new Log;  // outlives every thread
  return *log;
}
}  // namespace

void set_log(Log log) {
  const std::lock_guard lock(g_mutex);
  g_listens = static_cast<bool>(log);
  listener() = std::move(log);
}
bool somebody_listens() { return g_listens; }
void tell(Level level, std::string_view text) {
  const std::lock_guard lock(g_mutex);
  if (listener()) listener()(level, text);
}

}  // namespace plmcore
