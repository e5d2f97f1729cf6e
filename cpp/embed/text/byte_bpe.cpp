// Byte-level BPE as of GPT-2: text is cut into words with the space before them, numbers and the rest; the
// bytes of a piece are merged, pairs that were learnt first before others.
#include <array>
#include <climits>
#include <queue>

#include "embed/text/tokenizer.h"

namespace plmcore {

using unicode::is;

namespace {

// The characters that stand for the 256 bytes in vocabularies: printable ones for themselves, others from 256
// on.
std::array<char32_t, 256> byte_characters() {
  std::array<char32_t, 256> found{};
  char32_t next = 256;
  for (char32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    found[b] = printable ? b : next++;
  }
  return found;
}

class ByteBpe final : public Text::Tokenizer {
 public:
  explicit ByteBpe(const Card& c) : Tokenizer(c), prefix_space_(setting("prefix_space", 0)) {
    const auto characters = byte_characters();
    for (size_t b = 0; b < 256; ++b) {
      std::string token;
      unicode::append(token, characters[b]);
      byte_ids_[b] = vocabulary.find(token);
      bytes_[characters[b]] = static_cast<char>(b);
    }
    check<FormatError>(card.merges.defined() && card.merges.size(1).is(3),
                       "the tokenizer of the file has no merges [M, 3]");
    const int64_t M = card.merges.size(0).value();
    const int32_t* rows = card.merges.as<int32_t>();
    merges_.reserve(static_cast<size_t>(M));
    for (int64_t m = 0; m < M; ++m) {
      for (int k = 0; k < 3; ++k)
        check<FormatError>(rows[3 * m + k] >= 0 && rows[3 * m + k] < vocabulary.size(), "merge ", m,
                           " of the file names the id ", rows[3 * m + k]);
      merges_.try_emplace(pair(rows[3 * m], rows[3 * m + 1]),
                          Merge{static_cast<int32_t>(m), rows[3 * m + 2]});
    }
  }

 protected:
  void tokenise(const Points& given, std::vector<int64_t>& ids) const override {
    if (prefix_space_ && given[0] != U' ') return cut(U' ' + given, ids);
    cut(given, ids);
  }

  std::string join(const std::vector<std::string_view>& tokens) const override {
    std::string all;
    for (std::string_view token : tokens) {
      std::string bytes;
      bool known = true;
      for (char32_t c : unicode::points_of(token)) {
        const auto it = bytes_.find(c);
        if (it == bytes_.end()) {
          known = false;  // an added token: itself
          break;
        }
        bytes.push_back(it->second);
      }
      all += known ? bytes : std::string(token);
    }
    return unicode::repaired(all);
  }

 private:
  struct Merge {
    int32_t rank, id;
  };
  static uint64_t pair(int64_t a, int64_t b) {
    return static_cast<uint64_t>(a) << 32 | static_cast<uint64_t>(b);
  }

  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  static size_t end_of(const Points& t, size_t i) {
    const size_t n = t.size();
    if (t[i] == U'\'') {
      constexpr std::u32string_view kEndings[] = {U"s", U"t", U"re", U"ve", U"m", U"ll", U"d"};
      for (auto ending : kEndings)
        if (t.compare(i + 1, ending.size(), ending) == 0) return i + 1 + ending.size();
    }
    const size_t first = i + (t[i] == U' ' ? 1 : 0);
    const auto run = [&](size_t j, auto inside) {
      while (j < n && inside(t[j])) ++j;
      return j;
    };
    const auto rest = [](char32_t c) {
      return !is(c, unicode::kWhite | unicode::kLetter | unicode::kNumber);
    };
    if (first < n && is(t[first], unicode::kLetter))
      return run(first, [](char32_t c) { return is(c, unicode::kLetter); });
    if (first < n && is(t[first], unicode::kNumber))
      return run(first, [](char32_t c) { return is(c, unicode::kNumber); });
    if (first < n && rest(t[first])) return run(first, rest);
    const size_t end = run(i, [](char32_t c) { return is(c, unicode::kWhite); });
    return end == n || end == i + 1 ? end : end - 1;  // the last white one belongs to the word behind
  }

  void cut(const Points& text, std::vector<int64_t>& ids) const {
    std::string bytes;
    for (size_t i = 0; i < text.size();) {
      const size_t end = end_of(text, i);
      bytes.clear();
      for (; i < end; ++i) unicode::append(bytes, text[i]);
      merge(bytes, ids);
    }
  }

  struct Symbol {
    int64_t id;
    int32_t before, after;  // neighbours, -1: none
  };
  struct Candidate {
    int32_t rank, left;
    int64_t a, b;  // what stood there
    bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : left > o.left; }
  };

  void merge(const std::string& bytes, std::vector<int64_t>& ids) const {
    std::vector<Symbol> symbols;
    symbols.reserve(bytes.size());
    for (char byte : bytes) {
      const int64_t id = byte_ids_[static_cast<uint8_t>(byte)];
      if (id >= 0) {  // a vocabulary may lack bytes: they are left out
        const auto at = static_cast<int32_t>(symbols.size());
        symbols.push_back({id, at - 1, at + 1});
      }
    }
    if (symbols.empty()) return;
    symbols.back().after = -1;
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto look = [&](int32_t left) {
      const int32_t right = left < 0 ? -1 : symbols[static_cast<size_t>(left)].after;
      if (right < 0) return;
      const int64_t a = symbols[static_cast<size_t>(left)].id, b = symbols[static_cast<size_t>(right)].id;
      if (const auto it = merges_.find(pair(a, b)); it != merges_.end())
        queue.push({it->second.rank, left, a, b});
    };
    for (int32_t i = 0; i < static_cast<int32_t>(symbols.size()); ++i) look(i);
    while (!queue.empty()) {
      const Candidate c = queue.top();
      queue.pop();
      Symbol& left = symbols[static_cast<size_t>(c.left)];
      if (left.id != c.a || left.after < 0 || symbols[static_cast<size_t>(left.after)].id != c.b) continue;
      Symbol& right = symbols[static_cast<size_t>(left.after)];
      left.id = merges_.at(pair(c.a, c.b)).id;
      left.after = right.after;
      right.id = -1;
      if (left.after >= 0) symbols[static_cast<size_t>(left.after)].before = c.left;
      look(left.before);
      look(c.left);
    }
    for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].after)
      ids.push_back(symbols[static_cast<size_t>(i)].id);
  }

  bool prefix_space_;
  std::array<int64_t, 256> byte_ids_{};
  std::unordered_map<char32_t, char> bytes_;
  std::unordered_map<uint64_t, Merge> merges_;
};

}  // namespace

std::unique_ptr<Text::Tokenizer> make_byte_bpe(const Card& card) { return std::make_unique<ByteBpe>(card); }

}  // namespace plmcore
