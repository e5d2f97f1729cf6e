// What the kinds of tokenizers share: the vocabulary, and tokens that are looked for before all others.
#pragma once

#include <memory>
#include <unordered_map>

#include "embed/text/unicode.h"
#include "plmcore/text.h"

namespace plmcore {

using unicode::Points;

// The tokens of a card by id, where they lie in the file.
class Vocabulary {
 public:
  explicit Vocabulary(const TextCard& card);  // FormatError where its tensors do not fit together
  int64_t size() const { return size_; }
  std::string_view operator[](int64_t id) const;
  int64_t find(std::string_view token) const;  // -1: there is none

 private:
  Tensor tokens_, ends_;
  int64_t size_;
  std::unordered_map<std::string_view, int64_t> ids_;
};

class Text::Tokenizer {
 public:
  explicit Tokenizer(const Card& card);
  virtual ~Tokenizer() = default;
  void finish();  // to be called once it is made: added tokens are normalised as texts are

  std::vector<int64_t> ids(std::string_view text) const;
  std::string decode(std::span<const int64_t> ids, bool skip_special) const;
  Row dressed(const std::vector<TextCard::Part>& parts, std::span<const int64_t> a,
              std::span<const int64_t> b) const;

  const TextCard card;
  const Vocabulary vocabulary;
  const int64_t longest;  // tokens of a row; 0: any number

 protected:
  virtual Points normalised(Points text) const { return text; }
  virtual void tokenise(const Points& text, std::vector<int64_t>& ids) const = 0;
  virtual std::string join(const std::vector<std::string_view>& tokens) const = 0;
  int64_t setting(const char* name, int64_t otherwise) const;

 private:
  struct Wanted {
    Points token;
    TextCard::Added added;
  };
  // By first character, the longest first.
  using Matcher = std::unordered_map<char32_t, std::vector<Wanted>>;
  static void want(Matcher& matcher, Points token, const TextCard::Added& added);
  // f(piece) for what stands between added tokens, and their ids.
  template <class F>
  void split(const Matcher& wanted, const Points& text, std::vector<int64_t>& ids, F f) const;

  std::vector<bool> special_;
  Matcher raw_, normalised_;  // tokens that are looked for before normalisation, and after it
};

std::unique_ptr<Text::Tokenizer> make_wordpiece(const Card& card);
std::unique_ptr<Text::Tokenizer> make_byte_bpe(const Card& card);

}  // namespace plmcore
