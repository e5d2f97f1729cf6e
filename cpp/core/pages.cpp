#include "core/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace plmcore {

// An entry of /proc/self/pagemap: bit 63 present, bit 61 a file's page. One that was written to in a private
// mapping is a copy, and no file's.
static bool clean_file_page(uint64_t entry) { return (entry >> 63 & 1) != 0 && (entry >> 61 & 1) != 0; }

void release_file_pages(const void* data, size_t bytes) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = (reinterpret_cast<uintptr_t>(data) + page - 1) / page,
             to = (reinterpret_cast<uintptr_t>(data) + bytes) / page;
  if (from >= to) return;
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (map < 0) return;
  std::vector<uint64_t> entries(4096);
  for (uintptr_t at = from; at < to; at += entries.size()) {
    const size_t n = std::min<size_t>(entries.size(), to - at);
    if (::pread(map, entries.data(), n * sizeof(uint64_t), static_cast<off_t>(at * sizeof(uint64_t))) !=
        static_cast<ssize_t>(n * sizeof(uint64_t)))
      break;
    for (size_t i = 0; i < n;) {
      size_t end = i;
      while (end < n && clean_file_page(entries[end])) ++end;
      if (end > i) ::madvise(reinterpret_cast<void*>((at + i) * page), (end - i) * page, MADV_DONTNEED);
      i = end + 1;
    }
  }
  ::close(map);
}

}  // namespace plmcore
