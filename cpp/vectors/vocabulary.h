// Words of a text and their counts, and the text as ids. Words are bytes between spaces, tabs and line ends;
// a carriage return is nothing, inside of a word too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plmcore::vectors {

// Text comes in chunks, which may end anywhere. A line end is the id 0; words have ids from 1 on.
class Vocabulary {
 public:
  // ends: the line end is a word of its own, "</s>", as in word2vec.
  explicit Vocabulary(bool ends);

  void count(std::string_view chunk);
  // Ends the text, keeps words that were seen min_count times, by falling count. Of equal counts the first
  // seen one comes first, or by bytes the smaller one. The word that the text ends with counts if `last`.
  void sort(int64_t min_count, bool by_bytes, bool last);
  // The ids of what is known.
  void encode(std::string_view chunk, std::vector<int32_t>& out);
  void end(bool last, std::vector<int32_t>& out);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  std::string_view word(int64_t i) const { return words_[static_cast<size_t>(i)].text; }
  int64_t count_of(int64_t i) const { return words_[static_cast<size_t>(i)].count; }
  int64_t ends() const { return line_ends_; }

 private:
  struct Word {
    std::string text;
    int64_t count;
  };
  template <class F, class G>
  void split(std::string_view chunk, F word, G line);
  size_t slot(std::string_view word) const;
  int32_t found(std::string_view word) const;
  void add(std::string_view word);
  void grow(size_t slots);

  bool ends_;
  int64_t line_ends_ = 0;
  std::string begun_;           // of a word that goes on in the next chunk
  std::vector<Word> words_;
  std::vector<int32_t> slots_;  // of a hash table: word + 1, 0 where it is empty
};

}  // namespace plmcore::vectors
