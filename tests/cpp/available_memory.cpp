#include "core/available_memory.h"

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "test.h"

using namespace plmcore;
namespace fs = std::filesystem;

namespace {
struct Machine {  // a folder that stands in for "/", with 1,000,000 kB of memory left
  std::string root;
  Machine() {
    char path[] = "/tmp/plmcore-test-XXXXXX";
    root = mkdtemp(path);
    write("/proc/meminfo", "MemTotal: 9000000 kB\nMemFree: 5 kB\nMemAvailable:   1000000 kB\n");
  }
  ~Machine() { fs::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  void group(const std::string& folder, const std::string& limit, const std::string& used,
             const std::string& stat) const {
    const bool first = folder.find("/memory") != std::string::npos;
    write("/sys/fs/cgroup" + folder + (first ? "/memory.limit_in_bytes" : "/memory.max"), limit + "\n");
    write("/sys/fs/cgroup" + folder + (first ? "/memory.usage_in_bytes" : "/memory.current"), used + "\n");
    write("/sys/fs/cgroup" + folder + "/memory.stat", stat);
  }
};
}  // namespace

TEST(available_memory_of_the_machine) {
  const Machine m;
  CHECK_EQ(available_memory(m.root), size_t{1024000000});
  m.write("/proc/self/cgroup", "0::/\n");
  m.write("/sys/fs/cgroup/memory.max", "max\n");
  CHECK_EQ(available_memory(m.root), size_t{1024000000});
  CHECK(available_memory() > 0);
}

TEST(available_memory_of_a_group_of_either_version) {
  const Machine second;
  second.write("/proc/self/cgroup", "0::/user.slice/job\n");
  second.group("/user.slice/job", "300000000", "120000000", "anon 100000000\ninactive_file 20000000\n");
  CHECK_EQ(available_memory(second.root), size_t{200000000});
  second.group("/user.slice", "50000000", "60000000", "inactive_file 0\n");  // a group above is full
  CHECK_EQ(available_memory(second.root), size_t{0});
  const Machine first;
  first.write("/proc/self/cgroup", "5:devices:/other\n4:cpu,memory:/job\n0::/\n");
  first.group("/memory/job", "300000000", "120000000", "inactive_file 1\ntotal_inactive_file 20000000\n");
  first.group("/memory", "9223372036854771712", "900000000", "");
  CHECK_EQ(available_memory(first.root), size_t{200000000});
}

TEST(available_memory_in_a_container) {
  const Machine m;  // which sees its group at the mount, under a path from outside
  m.write("/proc/self/cgroup", "4:memory:/docker/0123\n");
  m.group("/memory", "64000000", "4000000", "total_inactive_file 0\n");
  CHECK_EQ(available_memory(m.root), size_t{60000000});
}
