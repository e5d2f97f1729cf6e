#include "core/available_memory.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>

namespace plmcore {

namespace {
// A number in a small file of /proc or /sys, after `key` where there is one; `missing` when it is absent or
// says "max".
size_t read_number(const std::string& path, const std::string& key, size_t missing) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    unsigned long long value;
    return std::istringstream(line.substr(key.size())) >> value ? static_cast<size_t>(value) : missing;
  }
  return missing;
}

struct Names {  // of the files of a group's folder; the page cache that can go is no use of memory
  const char *limit, *used, *cache;
};
constexpr Names kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file "};
constexpr Names kVersion2 = {"/memory.max", "/memory.current", "inactive_file "};

size_t group_memory(const std::string& folder, const Names& names) {
  const size_t limit = read_number(folder + names.limit, "", SIZE_MAX);
  if (limit == SIZE_MAX) return SIZE_MAX;
  const size_t used = read_number(folder + names.used, "", 0),
               cache = read_number(folder + "/memory.stat", names.cache, 0);
  const size_t held = used > cache ? used - cache : 0;
  return limit > held ? limit - held : 0;
}
}  // namespace

size_t available_memory(const std::string& root) {
  size_t left = read_number(root + "/proc/meminfo", "MemAvailable:", SIZE_MAX / 1024) * 1024;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (unified ? "" : "/memory");
    // Up to the mount itself: a container sees its own group there, while the path may be the one outside.
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      left = std::min(left, group_memory(mount + path, unified ? kVersion2 : kVersion1));
      if (path.find('/') == std::string::npos) break;
    }
  }
  return left;
}

}  // namespace plmcore
