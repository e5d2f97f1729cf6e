// Text: the tokenizer of a model file. Ids are those of the Python side.
//
//   const plmcore::Text text(model);
//   const auto found = session.generate({text.encode("Once upon a time").ids}, options);
//   puts(text.decode(found[0][0].tokens).c_str());
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plmcore/session.h"

namespace plmcore {

// Never changes: any number of threads may use one.
class Text {
 public:
  // ValueError where the file has no tokenizer, or one of a kind that is not served here: WordPiece and
  // byte-level BPE are. Sessions take ids all the same.
  explicit Text(const Model& model);
  ~Text();
  Text(Text&&) noexcept;

  static bool serves(const Model& model);

  // Ids with the special tokens of the model. What is longer than max_length is cut, of a pair the longer
  // text first; 0: as long as tokenizer and model allow. ValueError for invalid UTF-8.
  Row encode(std::string_view text, int64_t max_length = 0) const;
  Row encode(std::string_view text, std::string_view pair, int64_t max_length = 0) const;
  std::vector<int64_t> ids(std::string_view text) const;  // without special tokens, whole

  std::string decode(std::span<const int64_t> ids, bool skip_special = true) const;
  std::string token(int64_t id) const;  // IndexError for an id that there is not
  int64_t size() const;  // of the vocabulary

  class Tokenizer;  // cpp/embed/text/tokenizer.h

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace plmcore
