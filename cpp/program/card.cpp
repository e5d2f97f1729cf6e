#include "program/card.h"

#include <algorithm>
#include <array>

namespace plmcore {

int64_t Card::id(const std::string& role) const {
  const auto it = ids.find(role);
  return it == ids.end() || it->second.empty() ? -1 : it->second[0];
}

namespace {

constexpr int64_t kMost = int64_t{1} << 31;
constexpr std::array kModes = {"cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean"};

// The members of an object that may be there, each read once.
class Members {
 public:
  Members(const Reader& r, bool lenient) : r_(r), lenient_(lenient) {}

  template <class F>
  void operator()(const char* name, F read) {
    known_.push_back(name);
    if (r_.has(name)) read(r_[name]);
  }
  void integer(const char* name, int64_t& to, int64_t low = 0, int64_t high = kMost) {
    (*this)(name, [&](const Reader& r) { to = r.integer(low, high); });
  }
  void number(const char* name, double& to) {
    (*this)(name, [&](const Reader& r) { to = r.number(); });
  }
  void flag(const char* name, bool& to) {
    (*this)(name, [&](const Reader& r) { to = r.integer(0, 1) != 0; });
  }
  void text(const char* name, std::string& to) {
    (*this)(name, [&](const Reader& r) { to = r.text(); });
  }
  void end() const {
    if (!lenient_) r_.members(known_);
  }

 private:
  const Reader& r_;
  bool lenient_;
  std::vector<const char*> known_;
};

std::vector<int64_t> ids(const Reader& r) {
  std::vector<int64_t> found;
  for (size_t i = 0; i < r.size(); ++i) found.push_back(r.at(i).integer(0, kMost));
  return found;
}

Pooling read_pooling(const Reader& r, bool lenient) {
  Pooling pooling;
  Members m(r, lenient);
  m("modes", [&](const Reader& modes) {
    modes.require(modes.size() > 0, "there is no mode");
    pooling.modes.clear();
    for (size_t i = 0; i < modes.size(); ++i) {
      const std::string& mode = modes.at(i).text();
      modes.at(i).require(std::ranges::find(kModes, mode) != kModes.end(), "there is no pooling '", mode,
                          "'");
      pooling.modes.push_back(mode);
    }
  });
  m.flag("normalise", pooling.normalise);
  m.integer("max_length", pooling.max_length);
  m.end();
  return pooling;
}

Padding read_padding(const Reader& r, bool lenient) {
  Padding padding;
  Members m(r, lenient);
  m.flag("left", padding.left);
  m.integer("id", padding.id);
  m.integer("type", padding.type);
  m.end();
  return padding;
}

Options read_options(const Reader& r, bool lenient) {
  Options o;
  Members m(r, lenient);
  m.integer("max_new_tokens", o.max_new_tokens);
  m.integer("max_length", o.max_length);
  m.integer("min_new_tokens", o.min_new_tokens);
  m.integer("min_length", o.min_length);
  m.integer("num_beams", o.beams);
  m.integer("num_beam_groups", o.groups);
  m.integer("num_return_sequences", o.returns);
  m.number("diversity_penalty", o.diversity);
  m.number("length_penalty", o.length_penalty);
  m.flag("gnmt", o.gnmt);
  m("early_stopping",
    [&](const Reader& e) { o.early_stopping = static_cast<EarlyStopping>(e.integer(0, 2)); });
  m.flag("do_sample", o.sample);
  m.number("temperature", o.temperature);
  m.integer("top_k", o.top_k);
  m.number("top_p", o.top_p);
  m.number("typical_p", o.typical_p);
  m.number("repetition_penalty", o.repetition_penalty);
  m.integer("no_repeat_ngram_size", o.no_repeat_ngram);
  m("bad_words_ids", [&](const Reader& words) {
    for (size_t i = 0; i < words.size(); ++i) o.bad_words.push_back(ids(words.at(i)));
  });
  m("forced_bos_token_id", [&](const Reader& list) { o.forced_first = ids(list); });
  m("forced_eos_token_id", [&](const Reader& list) { o.forced_last = ids(list); });
  m.end();
  return o;
}

std::vector<TextCard::Part> read_parts(const Reader& r, int texts) {
  std::vector<TextCard::Part> parts;
  std::array<int, 2> times{};
  r.require(r.size() <= 256, "more than 256 parts");
  for (size_t i = 0; i < r.size(); ++i) {
    r.at(i).size(3);
    const auto text = static_cast<int>(r.at(i).at(0).integer(-1, texts - 1));
    if (text >= 0) ++times[static_cast<size_t>(text)];
    parts.push_back({text, r.at(i).at(1).integer(-1, kMost), r.at(i).at(2).integer(0, kMost)});
  }
  for (int k = 0; k < texts; ++k)
    r.require(times[static_cast<size_t>(k)] == 1, "must have each of ", texts, " texts once");
  return parts;
}

// A tokenizer's tensor: its dtype and rank, and its place in the file.
void take_tensor(Members& m, const char* name, DType dtype, int rank, Header& header) {
  m(name, [&](const Reader& r) {
    const std::string& wanted = r.text();
    const auto it = std::ranges::find(header.tensors, wanted, &FileTensor::name);
    r.require(it != header.tensors.end(), "there is no tensor '", wanted, "'");
    r.require(it->spec.dtype == dtype && it->spec.shape.rank() == rank, "the tensor '", wanted, "' must be ",
              dtype, " of rank ", rank, ", got ", it->spec);
    header.text_tensors[name] = static_cast<size_t>(it - header.tensors.begin());
  });
}

TextCard read_text(const Reader& r, bool lenient, Header& header) {
  TextCard text;
  Members m(r, lenient);
  m.text("kind", text.kind);
  take_tensor(m, "tokens", DType::uint8, 1, header);
  take_tensor(m, "ends", DType::int64, 1, header);
  take_tensor(m, "merges", DType::int32, 2, header);
  take_tensor(m, "scores", DType::float32, 1, header);
  take_tensor(m, "normalisation", DType::uint8, 1, header);
  m("added", [&](const Reader& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      list.at(i).size(6);
      const auto flag = [&](size_t k) { return list.at(i).at(k).integer(0, 1) != 0; };
      text.added.push_back({list.at(i).at(0).integer(0, kMost), flag(1), flag(2), flag(3), flag(4), flag(5)});
    }
  });
  m("single", [&](const Reader& parts) { text.single = read_parts(parts, 1); });
  m("pair", [&](const Reader& parts) { text.pair = read_parts(parts, 2); });
  m("settings", [&](const Reader& s) {
    for (const std::string& key : s.keys()) text.settings[key] = s[key.c_str()].integer(-1, kMost);
  });
  m.text("prefix", text.prefix);
  m.end();
  r.require(!text.kind.empty(), "'kind' is missing");
  return text;
}

}  // namespace

void read_card(const Reader& r, bool lenient, Header& header) {
  Card& card = header.card;
  Members m(r, lenient);
  m.text("family", card.family);
  m.text("head", card.head);
  m.text("main", card.main);
  m.integer("vocabulary", card.vocabulary);
  m.integer("longest", card.longest);
  m("ids", [&](const Reader& roles) {
    for (const std::string& role : roles.keys()) card.ids[role] = ids(roles[role.c_str()]);
  });
  m("labels", [&](const Reader& list) {
    for (size_t i = 0; i < list.size(); ++i) card.labels.push_back(list.at(i).text());
  });
  m.text("problem", card.problem);
  m("pooling", [&](const Reader& p) { card.pooling = read_pooling(p, lenient); });
  m("padding", [&](const Reader& p) { card.padding = read_padding(p, lenient); });
  m("generation", [&](const Reader& g) { card.generation = read_options(g, lenient); });
  m("text", [&](const Reader& t) { card.text = read_text(t, lenient, header); });
  m.end();
  const auto eos = card.ids.find("eos");
  if (eos != card.ids.end()) card.generation.eos = eos->second;
  if (!card.main.empty())
    r.require(std::ranges::find(header.programs, card.main, &Header::Entry::name) != header.programs.end(),
              "there is no program '", card.main, "'");
}

}  // namespace plmcore
