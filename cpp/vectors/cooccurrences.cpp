#include "vectors/cooccurrences.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <queue>

#include "io/file.h"
#include "plmcore/error.h"

namespace plmcore::vectors {
namespace {

constexpr int64_t kPending = 256;   // pairs that wait for their slots to arrive in the cache
constexpr size_t kBlock = 1 << 12;  // records that are read or written at a time

struct Entry {
  uint64_t key;  // row, column; 0: none
  double value;
};

uint64_t key_of(int32_t row, int32_t column) {
  return static_cast<uint64_t>(row) << 32 | static_cast<uint32_t>(column);
}
uint64_t mirrored(uint64_t key) { return key << 32 | key >> 32; }

// A file without a name: it goes with the process.
class Run {
 public:
  explicit Run(const std::string& folder) {
    std::string name = folder + "/.run-XXXXXX";
    const int fd = mkstemp(name.data());
    if (fd < 0) system_failed("create", name, errno);
    unlink(name.c_str());
    file_ = fdopen(fd, "w+b");
    path_ = std::move(name);
  }
  ~Run() { fclose(file_); }
  Run(const Run&) = delete;

  void write(const Entry* entries, size_t n) {
    if (fwrite(entries, sizeof(Entry), n, file_) != n) system_failed("write", path_, errno);
  }
  void rewind() {
    if (fflush(file_) != 0) system_failed("write", path_, errno);
    ::rewind(file_);
  }
  bool next(Entry& entry) {
    if (at_ == block_.size()) {
      block_.resize(kBlock);
      block_.resize(fread(block_.data(), sizeof(Entry), kBlock, file_));
      if (block_.empty() && ferror(file_)) system_failed("read", path_, errno);
      at_ = 0;
      if (block_.empty()) return false;
    }
    entry = block_[at_++];
    return true;
  }

 private:
  FILE* file_;
  std::string path_;
  std::vector<Entry> block_;
  size_t at_ = 0;
};

}  // namespace

struct Cooccurrences::State {
  std::string folder;
  int64_t window;
  bool symmetric;
  int32_t dense;                     // words of the table
  std::vector<double> table;         // [dense, dense]; rows not above columns if symmetric
  std::vector<Entry> slots;
  size_t used = 0, most;             // slots; most: that there may be
  std::vector<Entry> pending;
  std::vector<std::unique_ptr<Run>> runs;
  std::vector<int32_t> line;         // the last `window` words of the line, in a ring
  int64_t length = 0;                // of the line
  std::vector<double> weights;       // 1 / distance

  size_t slot(uint64_t key) const {
    const uint64_t h = key * 0x9E3779B97F4A7C15;
    return static_cast<size_t>(static_cast<unsigned __int128>(h ^ h >> 32 ^ h << 32) * slots.size() >> 64);
  }
  void put(const Entry& entry) {
    size_t at = slot(entry.key);
    while (slots[at].key != 0 && slots[at].key != entry.key)
      if (++at == slots.size()) at = 0;
    if (slots[at].key == 0) {
      slots[at].key = entry.key;
      ++used;
    }
    slots[at].value += entry.value;
  }
  void settle() {
    if (used + pending.size() > slots.size() / 4 * 3) make_room();
    for (const Entry& entry : pending) put(entry);
    pending.clear();
  }
  void make_room() {
    if (slots.size() == most) return flush();
    std::vector<Entry> old(std::min(slots.size() * 2, most));
    old.swap(slots);
    used = 0;
    for (const Entry& entry : old)
      if (entry.key) put(entry);
  }
  // The hash table becomes a run; if symmetric another one, with rows and columns exchanged.
  void flush() {
    const auto end = std::remove_if(slots.begin(), slots.end(), [](const Entry& e) { return e.key == 0; });
    const auto write = [&] {
      std::sort(slots.begin(), end, [](const Entry& a, const Entry& b) { return a.key < b.key; });
      runs.push_back(std::make_unique<Run>(folder));
      runs.back()->write(slots.data(), static_cast<size_t>(end - slots.begin()));
    };
    if (end != slots.begin()) write();
    if (symmetric && end != slots.begin()) {
      // A word with itself is in both runs: it counts twice.
      for (auto e = slots.begin(); e != end; ++e) e->key = mirrored(e->key);
      write();
    }
    std::fill(slots.begin(), slots.end(), Entry{});
    used = 0;
  }
  double dense_at(int32_t row, int32_t column) const {
    if (!symmetric) return table[static_cast<size_t>(row) * dense + column];
    const double x = table[static_cast<size_t>(std::min(row, column)) * dense + std::max(row, column)];
    return row == column ? 2 * x : x;
  }
};

Cooccurrences::Cooccurrences(const std::string& folder, int64_t vocabulary, int64_t window, bool symmetric,
                             int64_t memory)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.folder = folder;
  s.window = window;
  s.symmetric = symmetric;
  // A fifth for the table, half for the hash table, which needs half as much again when it grows.
  s.dense = static_cast<int32_t>(
      std::min<int64_t>({vocabulary, 8192, static_cast<int64_t>(std::sqrt(memory / 5 / 8.0))}));
  s.table.resize(static_cast<size_t>(s.dense) * static_cast<size_t>(s.dense));
  s.most = static_cast<size_t>(std::max<int64_t>(memory / 2 / static_cast<int64_t>(sizeof(Entry)), 4096));
  s.slots.resize(std::min<size_t>(s.most, 1 << 16));
  s.pending.reserve(kPending);
  s.line.resize(static_cast<size_t>(window));
  s.weights.resize(static_cast<size_t>(window) + 1);
  for (int64_t d = 1; d <= window; ++d) s.weights[static_cast<size_t>(d)] = 1.0 / static_cast<double>(d);
}

Cooccurrences::~Cooccurrences() = default;

int64_t Cooccurrences::runs() const { return static_cast<int64_t>(state_->runs.size()); }

void Cooccurrences::add(const int32_t* ids, int64_t n) {
  State& s = *state_;
  const size_t window = static_cast<size_t>(s.window);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t word = ids[i];
    if (word == 0) {
      s.length = 0;
      continue;
    }
    const size_t near = std::min<size_t>(static_cast<size_t>(s.length), window);
    size_t at = static_cast<size_t>(s.length) % window;
    const size_t own = at;
    for (size_t d = 1; d <= near; ++d) {
      at = at == 0 ? window - 1 : at - 1;
      int32_t row = s.line[at], column = word;
      if (s.symmetric && row > column) std::swap(row, column);
      if (row <= s.dense && column <= s.dense) {
        s.table[static_cast<size_t>(row - 1) * s.dense + static_cast<size_t>(column - 1)] += s.weights[d];
      } else {
        const uint64_t key = key_of(row, column);
        __builtin_prefetch(&s.slots[s.slot(key)], 1);
        s.pending.push_back({key, s.weights[d]});
        if (s.pending.size() == kPending) s.settle();
      }
    }
    s.line[own] = word;
    ++s.length;
  }
}

int64_t Cooccurrences::write(const std::string& path) {
  State& s = *state_;
  s.settle();
  s.flush();
  std::vector<Entry>().swap(s.slots);
  using Head = std::pair<uint64_t, size_t>;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  std::vector<Entry> values(s.runs.size() + 1);
  int32_t row = 0, column = 0;  // of the table
  const auto next = [&](size_t source) {
    Entry& value = values[source];
    if (source < s.runs.size()) {
      if (s.runs[source]->next(value)) heads.push({value.key, source});
      return;
    }
    for (; row < s.dense; ++row, column = 0)
      for (; column < s.dense; ++column)
        if (const double x = s.dense_at(row, column); x != 0) {
          value = {key_of(row + 1, column + 1), x};
          heads.push({value.key, source});
          ++column;
          return;
        }
  };
  for (auto& run : s.runs) run->rewind();
  for (size_t i = 0; i < values.size(); ++i) next(i);
  FileWriter out(path);
  std::vector<Record> block;
  int64_t written = 0;
  while (!heads.empty()) {
    const uint64_t key = heads.top().first;
    double sum = 0;
    while (!heads.empty() && heads.top().first == key) {
      const size_t source = heads.top().second;
      heads.pop();
      sum += values[source].value;
      next(source);
    }
    block.push_back({static_cast<int32_t>(key >> 32), static_cast<int32_t>(key), sum});
    ++written;
    if (block.size() == kBlock) {
      out.write(block.data(), block.size() * sizeof(Record));
      block.clear();
    }
  }
  out.write(block.data(), block.size() * sizeof(Record));
  out.finish();
  return written;
}

}  // namespace plmcore::vectors
