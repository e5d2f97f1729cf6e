// WordPiece as of BERT: text is cleaned and, if so, lower-cased and stripped of accents; words and
// punctuation are apart; a word is the longest pieces of the vocabulary from its start on.
#include <algorithm>
#include <array>

#include "embed/text/tokenizer.h"

namespace plmcore {

using unicode::is;

namespace {

class WordPiece final : public Text::Tokenizer {
 public:
  explicit WordPiece(const Card& c)
      : Tokenizer(c),
        clean_(setting("clean", 1)),
        chinese_(setting("chinese", 1)),
        accents_(setting("accents", 1)),
        lower_(setting("lower", 1)),
        unknown_(setting("unknown", -1)),
        longest_word_(static_cast<size_t>(setting("longest_word", 100))) {
    check<FormatError>(unknown_ >= 0 && unknown_ < vocabulary.size(), "the tokenizer of the file has no id ",
                       unknown_, " for unknown words");
    for (int64_t id = 0; id < vocabulary.size(); ++id)
      if (vocabulary[id].starts_with(card.prefix) && vocabulary[id].size() > card.prefix.size())
        inner_.try_emplace(vocabulary[id].substr(card.prefix.size()), id);
  }

 protected:
  Points normalised(Points text) const override {
    if (clean_) {
      Points kept;
      for (char32_t c : text) {
        const bool breaks = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xfffd || (!breaks && is(c, unicode::kOther))) continue;
        kept.push_back(is(c, unicode::kWhite) ? U' ' : c);
      }
      text = std::move(kept);
    }
    if (chinese_) {
      Points apart;
      for (char32_t c : text)
        if (is(c, unicode::kIdeograph)) apart.append({U' ', c, U' '});
        else apart.push_back(c);
      text = std::move(apart);
    }
    if (accents_) {
      Points bare;
      for (char32_t c : text) {
        const size_t before = bare.size();
        unicode::append_decomposed(bare, c);
        bare.erase(std::remove_if(bare.begin() + static_cast<int64_t>(before), bare.end(),
                                  [](char32_t d) { return is(d, unicode::kNonspacing); }),
                   bare.end());
      }
      text = std::move(bare);
    }
    if (lower_) {
      Points small;
      for (char32_t c : text) unicode::append_lower(small, c);
      text = std::move(small);
    }
    return text;
  }

  void tokenise(const Points& text, std::vector<int64_t>& ids) const override {
    const auto punctuation = [](char32_t c) {
      const bool ascii =
          (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
      return ascii || is(c, unicode::kPunctuation);
    };
    for (size_t i = 0; i < text.size();) {
      if (is(text[i], unicode::kWhite)) {
        ++i;
        continue;
      }
      size_t end = i + 1;
      if (!punctuation(text[i]))
        while (end < text.size() && !is(text[end], unicode::kWhite) && !punctuation(text[end])) ++end;
      word({text.data() + i, end - i}, ids);
      i = end;
    }
  }

  std::string join(const std::vector<std::string_view>& tokens) const override {
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string piece;
      if (i > 0 && tokens[i].starts_with(card.prefix)) piece = tokens[i].substr(card.prefix.size());
      else piece = (i > 0 ? " " : "") + std::string(tokens[i]);
      text += tidied(std::move(piece));
    }
    return text;
  }

 private:
  void word(std::u32string_view text, std::vector<int64_t>& ids) const {
    if (text.size() > longest_word_) return ids.push_back(unknown_);
    std::string bytes;
    std::array<uint16_t, 512> ends{};  // of the characters
    const bool many = text.size() >= ends.size();
    if (many) return ids.push_back(unknown_);
    for (size_t i = 0; i < text.size(); ++i) {
      unicode::append(bytes, text[i]);
      ends[i + 1] = static_cast<uint16_t>(bytes.size());
    }
    const size_t before = ids.size();
    for (size_t i = 0; i < text.size();) {
      size_t end = text.size();
      int64_t id = -1;
      for (; end > i; --end)
        if ((id = piece(std::string_view(bytes).substr(ends[i], ends[end] - ends[i]), i > 0)) >= 0) break;
      if (id < 0) {
        ids.resize(before);
        return ids.push_back(unknown_);
      }
      ids.push_back(id);
      i = end;
    }
  }
  int64_t piece(std::string_view text, bool inside) const {
    if (!inside) return vocabulary.find(text);
    const auto it = inner_.find(text);
    return it == inner_.end() ? -1 : it->second;
  }
  // English as it is written: no space before a full stop.
  static std::string tidied(std::string text) {
    constexpr std::pair<std::string_view, std::string_view> kRules[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kRules)
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
  }

  bool clean_, chinese_, accents_, lower_;
  int64_t unknown_;
  size_t longest_word_;
  std::unordered_map<std::string_view, int64_t> inner_;  // pieces inside of words, without the prefix
};

}  // namespace

std::unique_ptr<Text::Tokenizer> make_wordpiece(const Card& card) {
  return std::make_unique<WordPiece>(card);
}

}  // namespace plmcore
