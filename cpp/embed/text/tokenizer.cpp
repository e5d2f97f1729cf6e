#include "embed/text/tokenizer.h"

#include <algorithm>

namespace plmcore {

using unicode::is;

// ---- the vocabulary ----

Vocabulary::Vocabulary(const TextCard& card)
    : tokens_(card.tokens), ends_(card.ends), size_(card.ends.defined() ? card.ends.numel() : 0) {
  check<FormatError>(tokens_.defined() && ends_.defined(), "the tokenizer of the file has no vocabulary");
  int64_t begin = 0;
  for (int64_t id = 0; id < size_; ++id) {
    const int64_t end = ends_.as<int64_t>()[id];
    check<FormatError>(end >= begin && end <= tokens_.numel(),
                       "the vocabulary of the file is damaged: token ", id, " ends at ", end);
    begin = end;
  }
  ids_.reserve(static_cast<size_t>(size_));
  for (int64_t id = 0; id < size_; ++id)
    check<FormatError>(unicode::valid((*this)[id]), "the vocabulary of the file is damaged: token ", id,
                       " is not valid UTF-8");
  for (int64_t id = 0; id < size_; ++id)
    if (!(*this)[id].empty()) ids_.try_emplace((*this)[id], id);
}

std::string_view Vocabulary::operator[](int64_t id) const {
  const int64_t begin = id == 0 ? 0 : ends_.as<int64_t>()[id - 1], end = ends_.as<int64_t>()[id];
  return {tokens_.as<char>() + begin, static_cast<size_t>(end - begin)};
}

int64_t Vocabulary::find(std::string_view token) const {
  const auto it = ids_.find(token);
  return it == ids_.end() ? -1 : it->second;
}

// ---- added tokens ----

static int64_t shortest(int64_t a, int64_t b) { return a && b ? std::min(a, b) : std::max(a, b); }

Text::Tokenizer::Tokenizer(const Card& c)
    : card(c.text),
      vocabulary(c.text),
      longest(shortest(c.longest, setting("max_length", 0))),
      special_(static_cast<size_t>(vocabulary.size())) {
  const auto known = [&](int64_t id) {
    check<FormatError>(id >= 0 && id < vocabulary.size(), "the tokenizer of the file has no id ", id);
    return static_cast<size_t>(id);
  };
  for (const TextCard::Added& a : card.added)
    if (a.special) special_[known(a.id)] = true;
  for (const auto* parts : {&card.single, &card.pair})
    for (const TextCard::Part& part : *parts)
      if (part.text < 0) special_[known(part.id)] = true;
}

void Text::Tokenizer::want(Matcher& matcher, Points token, const TextCard::Added& added) {
  if (token.empty()) return;
  auto& list = matcher[token[0]];
  const auto shorter = [&](const Wanted& w) { return w.token.size() < token.size(); };
  list.insert(std::ranges::find_if(list, shorter), {token, added});
}

void Text::Tokenizer::finish() {
  for (const TextCard::Added& a : card.added) {
    check<FormatError>(a.id < vocabulary.size(), "the tokenizer of the file has no id ", a.id);
    Points token = unicode::points_of(vocabulary[a.id]);
    if (a.normalized) want(normalised_, normalised(std::move(token)), a);
    else want(raw_, std::move(token), a);
  }
}

int64_t Text::Tokenizer::setting(const char* name, int64_t otherwise) const {
  const auto it = card.settings.find(name);
  return it == card.settings.end() ? otherwise : it->second;
}

template <class F>
void Text::Tokenizer::split(const Matcher& wanted, const Points& text, std::vector<int64_t>& ids, F f) const {
  if (wanted.empty()) return f(text);
  const auto word = [&](size_t i) {
    return is(text[i], unicode::kLetter | unicode::kNumber) || text[i] == '_';
  };
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    const auto it = wanted.find(text[i]);
    const Wanted* match = nullptr;
    if (it != wanted.end())
      for (const Wanted& w : it->second)
        if (text.compare(i, w.token.size(), w.token) == 0) {
          match = &w;
          break;
        }
    if (!match) {
      ++i;
      continue;
    }
    size_t begin = i, end = i + match->token.size();
    i = end;
    if (match->added.single_word && ((begin > 0 && word(begin - 1)) || (end < text.size() && word(end))))
      continue;
    if (match->added.lstrip)
      while (begin > done && is(text[begin - 1], unicode::kWhite)) --begin;
    if (match->added.rstrip)
      while (end < text.size() && is(text[end], unicode::kWhite)) ++end;
    if (begin > done) f(text.substr(done, begin - done));
    ids.push_back(match->added.id);
    done = i = end;
  }
  if (done < text.size()) f(done == 0 ? text : text.substr(done));
}

// ---- text to ids and back ----

std::vector<int64_t> Text::Tokenizer::ids(std::string_view text) const {
  std::vector<int64_t> found;
  split(raw_, unicode::points_of(text), found, [&](const Points& piece) {
    split(normalised_, normalised(piece), found, [&](const Points& p) { tokenise(p, found); });
  });
  return found;
}

std::string Text::Tokenizer::decode(std::span<const int64_t> ids, bool skip_special) const {
  std::vector<std::string_view> tokens;
  for (int64_t id : ids) {
    check<IndexError>(id >= 0 && id < vocabulary.size(), "decode: there is no id ", id,
                      "; the vocabulary has ", vocabulary.size());
    if (!(skip_special && special_[static_cast<size_t>(id)])) tokens.push_back(vocabulary[id]);
  }
  return join(tokens);
}

Row Text::Tokenizer::dressed(const std::vector<TextCard::Part>& parts, std::span<const int64_t> a,
                             std::span<const int64_t> b) const {
  Row row;
  for (const TextCard::Part& part : parts) {
    const size_t before = row.ids.size();
    if (part.text < 0) row.ids.push_back(part.id);
    else {
      const auto text = part.text == 0 ? a : b;
      row.ids.insert(row.ids.end(), text.begin(), text.end());
    }
    row.types.insert(row.types.end(), row.ids.size() - before, part.type);
  }
  return row;
}

// ---- the public class ----

bool Text::serves(const Model& model) {
  return model.card().text.kind == "wordpiece" || model.card().text.kind == "byte-bpe";
}

Text::Text(const Model& model) {
  const Card& card = model.card();
  check<ValueError>(!card.text.kind.empty(), "the file of this ",
                    card.family.empty() ? "program" : card.family, " has no tokenizer; sessions take ids");
  check<ValueError>(serves(model), "the tokenizer of the file is of the kind '", card.text.kind,
                    "', which is not served in C++; sessions take ids");
  tokenizer_ = card.text.kind == "wordpiece" ? make_wordpiece(card) : make_byte_bpe(card);
  tokenizer_->finish();
}
Text::~Text() = default;
Text::Text(Text&&) noexcept = default;

Row Text::encode(std::string_view text, int64_t max_length) const {
  std::vector<int64_t> ids = tokenizer_->ids(text);
  const auto& parts = tokenizer_->card.single;
  const int64_t most = max_length ? max_length : tokenizer_->longest,
                added = static_cast<int64_t>(parts.size()) - 1;
  check<ValueError>(most == 0 || most >= added, "max_length = ", most, " has no room for the ", added,
                    " special tokens");
  if (most && static_cast<int64_t>(ids.size()) + added > most) ids.resize(static_cast<size_t>(most - added));
  return tokenizer_->dressed(parts, ids, {});
}

Row Text::encode(std::string_view text, std::string_view pair, int64_t max_length) const {
  std::vector<int64_t> a = tokenizer_->ids(text), b = tokenizer_->ids(pair);
  const auto& parts = tokenizer_->card.pair;
  const int64_t most = max_length ? max_length : tokenizer_->longest,
                added = static_cast<int64_t>(parts.size()) - 2;
  const auto n = static_cast<int64_t>(a.size()), m = static_cast<int64_t>(b.size()), room = most - added;
  check<ValueError>(most == 0 || room >= 0, "max_length = ", most, " has no room for the ", added,
                    " special tokens");
  if (most && n + m > room) {  // the longer one loses tokens until both are equal; an odd one stays with it
    int64_t less = std::min(n, m), more = less > room ? less : std::max(less, room - less);
    if (less + more > room) less = room / 2, more = less + room % 2;
    a.resize(static_cast<size_t>(n <= m ? less : more));
    b.resize(static_cast<size_t>(n <= m ? more : less));
  }
  return tokenizer_->dressed(parts, a, b);
}

std::vector<int64_t> Text::ids(std::string_view text) const { return tokenizer_->ids(text); }
std::string Text::decode(std::span<const int64_t> ids, bool skip_special) const {
  return tokenizer_->decode(ids, skip_special);
}
std::string Text::token(int64_t id) const {
  check<IndexError>(id >= 0 && id < size(), "there is no id ", id, "; the vocabulary has ", size());
  return std::string(tokenizer_->vocabulary[id]);
}
int64_t Text::size() const { return tokenizer_->vocabulary.size(); }

}  // namespace plmcore
