#include "vectors/vocabulary.h"

#include <algorithm>
#include <cstring>

#include "plmcore/error.h"

namespace plmcore::vectors {
namespace {

uint64_t hashed(std::string_view word) {
  uint64_t h = word.size() * 0x9E3779B97F4A7C15;
  size_t i = 0;
  for (; i + 8 <= word.size(); i += 8) {
    uint64_t part;
    std::memcpy(&part, word.data() + i, 8);
    h = (h ^ part) * 0xBF58476D1CE4E5B9;
    h ^= h >> 29;
  }
  uint64_t rest = 0;
  std::memcpy(&rest, word.data() + i, word.size() - i);
  h = (h ^ rest) * 0x94D049BB133111EB;
  return h ^ (h >> 32);
}

}  // namespace

Vocabulary::Vocabulary(bool ends) : ends_(ends), slots_(1 << 16) {
  if (ends) {
    add("</s>");
    words_[0].count = 0;
  }
}

template <class F, class G>
void Vocabulary::split(std::string_view chunk, F word, G line) {
  size_t begin = 0;
  for (size_t i = 0; i < chunk.size(); ++i) {
    const char c = chunk[i];
    if (static_cast<unsigned char>(c) > ' ' || (c != ' ' && c != '\t' && c != '\n' && c != '\r')) continue;
    const std::string_view part = chunk.substr(begin, i - begin);
    begin = i + 1;
    if (c == '\r') {
      begun_ += part;
      continue;
    }
    if (!begun_.empty()) {
      begun_ += part;
      word(begun_);
      begun_.clear();
    } else if (!part.empty()) {
      word(part);
    }
    if (c == '\n') line();
  }
  begun_ += chunk.substr(begin);
}

size_t Vocabulary::slot(std::string_view word) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hashed(word) & mask;
  while (slots_[at] && words_[static_cast<size_t>(slots_[at] - 1)].text != word) at = (at + 1) & mask;
  return at;
}

int32_t Vocabulary::found(std::string_view word) const {
  const int32_t place = slots_[slot(word)];
  return ends_ ? place - 1 : place > 0 ? place : -1;
}

void Vocabulary::add(std::string_view word) {
  const size_t at = slot(word);
  if (slots_[at]) {
    ++words_[static_cast<size_t>(slots_[at] - 1)].count;
    return;
  }
  check<ValueError>(words_.size() < INT32_MAX / 2, "the text has more than ", INT32_MAX / 2, " words");
  words_.push_back({std::string(word), 1});
  slots_[at] = static_cast<int32_t>(words_.size());
  if (words_.size() * 2 > slots_.size()) grow(slots_.size() * 2);
}

void Vocabulary::grow(size_t slots) {
  slots_.assign(slots, 0);
  for (size_t i = 0; i < words_.size(); ++i) slots_[slot(words_[i].text)] = static_cast<int32_t>(i + 1);
}

void Vocabulary::count(std::string_view chunk) {
  split(
      chunk, [this](std::string_view word) { add(word); },
      [this] {
        ++line_ends_;
        if (ends_) ++words_[0].count;
      });
}

void Vocabulary::sort(int64_t min_count, bool by_bytes, bool last) {
  if (last && !begun_.empty()) add(begun_);
  begun_.clear();
  const auto first = words_.begin() + ends_;
  words_.erase(std::remove_if(first, words_.end(), [=](const Word& w) { return w.count < min_count; }),
               words_.end());
  std::stable_sort(words_.begin() + ends_, words_.end(), [=](const Word& a, const Word& b) {
    return a.count != b.count ? a.count > b.count : by_bytes && a.text < b.text;
  });
  grow(slots_.size());
}

void Vocabulary::encode(std::string_view chunk, std::vector<int32_t>& out) {
  split(
      chunk,
      [&](std::string_view word) {
        if (const int32_t id = found(word); id >= 0) out.push_back(id);
      },
      [&] { out.push_back(0); });
}

void Vocabulary::end(bool last, std::vector<int32_t>& out) {
  if (const int32_t id = begun_.empty() || !last ? -1 : found(begun_); id >= 0) out.push_back(id);
  begun_.clear();
}

}  // namespace plmcore::vectors
