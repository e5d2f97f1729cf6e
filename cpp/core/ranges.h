// Memory in slabs that is handed out by best fit: a range is split to the size that is asked for and joined
// with its free neighbours when it comes back, so that blocks of one size make room for those of another.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace plmcore {

class Ranges {
 public:
  void add(void* slab, size_t bytes) { insert(static_cast<char*>(slab), {bytes, true, true}); }

  // The smallest free range that is large enough, the lowest of these; nullptr when there is none.
  void* take(size_t bytes) {
    const auto best = free_.lower_bound({bytes, nullptr});
    if (best == free_.end()) return nullptr;
    const auto it = ranges_.find(best->second);
    free_.erase(best);
    it->second.free = false;
    if (const size_t left = it->second.bytes - bytes) {
      it->second.bytes = bytes;
      insert(it->first + bytes, {left, false, true});
    }
    return it->first;
  }

  void put(void* p) {
    const auto it = ranges_.find(static_cast<char*>(p));
    it->second.free = true;
    free_.emplace(it->second.bytes, it->first);
    if (const auto next = std::next(it); next != ranges_.end()) join(it, next);
    if (it != ranges_.begin()) join(std::prev(it), it);
  }

  // Gives the slabs of which nothing is in use to put(slab, bytes).
  template <class F>
  void release(F put) {
    for (auto it = ranges_.begin(); it != ranges_.end();) {
      const auto next = std::next(it);
      if (it->second.free && it->second.starts_slab && (next == ranges_.end() || next->second.starts_slab)) {
        free_.erase({it->second.bytes, it->first});
        put(it->first, it->second.bytes);
        ranges_.erase(it);
      }
      it = next;
    }
  }

 private:
  struct Range {
    size_t bytes;
    bool starts_slab, free;
  };
  using Iterator = std::map<char*, Range>::iterator;

  void insert(char* p, Range range) {
    ranges_.emplace(p, range);
    free_.emplace(range.bytes, p);
  }
  void join(Iterator a, Iterator b) {
    if (!a->second.free || !b->second.free || b->second.starts_slab) return;
    free_.erase({a->second.bytes, a->first});
    free_.erase({b->second.bytes, b->first});
    a->second.bytes += b->second.bytes;
    free_.emplace(a->second.bytes, a->first);
    ranges_.erase(b);
  }

  std::map<char*, Range> ranges_;  // all, in the order of their addresses
  std::set<std::pair<size_t, char*>> free_;
};

}  // namespace plmcore
