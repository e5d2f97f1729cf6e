#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "generate/beams.h"
#include "generate/processors.h"
#include "generate/sampling.h"
#include "plmcore/ops.h"
#include "plmcore/threads.h"

namespace plmcore {

namespace {
// Tokens that a trace without beams has of each step, if the one that was taken is among them.
constexpr int64_t kShown = 5;

// A prompt's sequences, either of beams or each on its own.
struct Entry {
  int64_t prompt;
  std::vector<Beam> groups;
  std::vector<int64_t> starts;  // the first sequence of each group in the run that is asked for
  std::vector<Hypothesis> own;  // greedy and sampling
  std::vector<bool> ended;      // which of `own` are
};

// Whether it has all its sequences.
bool over(const Entry& e) {
  return e.groups.empty() ? std::ranges::all_of(e.ended, [](bool b) { return b; })
                          : std::ranges::all_of(e.groups, [](const Beam& b) { return b.over(); });
}

Tensor ids_tensor(const Shape& shape, const std::vector<int64_t>& values) {
  Tensor t = Tensor::empty(shape, DType::int64);
  std::ranges::copy(values, t.as<int64_t>());
  return t;
}
Dim dim(size_t n) { return Dim(static_cast<int64_t>(n)); }
}  // namespace

struct Search::State {
  SearchOptions options;
  std::vector<size_t> prompt_lengths;
  std::vector<Entry> entries;   // live
  std::vector<std::vector<Completion>> results;
  int64_t steps = 0, width = 1;  // sequences of each prompt in the run that is asked for
  std::vector<std::vector<std::vector<Considered>>> traces;  // by prompt and step, if they are kept
  Tensor live, parents, tokens;

  bool beams() const { return options.beams > 1; }
  void accept(const Tensor& logits);
  std::vector<std::vector<Continuations>> best_continuations(const Tensor& logits);
  Continuations of_group(const Entry& entry, size_t g, const float* rows, int64_t V,
                         std::map<int64_t, int64_t>& taken) const;
  void choose(const Tensor& logits);
  void record(Entry& e, size_t j, const Drawn& taken, const std::vector<Drawn>& best);
  void close();
  void ask();

  // f(entry, row of the logits, sequence). In the first run the sequences of a prompt are one.
  template <class F>
  void each_alive(F f) const {
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& e = entries[i];
      const int64_t row = static_cast<int64_t>(i) * width;
      for (size_t g = 0; g < (width == 1 ? std::min<size_t>(1, e.groups.size()) : e.groups.size()); ++g)
        for (size_t j = 0; j < e.groups[g].alive().size() && !e.groups[g].over(); ++j)
          f(i, row + e.starts[g] + static_cast<int64_t>(j), e.groups[g].alive()[j]);
      for (size_t j = 0; j < (width == 1 ? std::min<size_t>(1, e.own.size()) : e.own.size()); ++j)
        if (!e.ended[j]) f(i, row + static_cast<int64_t>(j), e.own[j]);
    }
  }
  // Applies the processors to the rows of the sequences that are alive, in place.
  void change(float* rows, int64_t V) {
    struct Row {
      int64_t prompt, at;
      const Hypothesis* h;
    };
    std::vector<Row> todo;
    each_alive(
        [&](size_t e, int64_t at, const Hypothesis& h) { todo.push_back({entries[e].prompt, at, &h}); });
    const auto run = [&](int64_t i, int) {
      const Row& r = todo[static_cast<size_t>(i)];
      change_scores(options, r.prompt, r.h->ids, steps, {rows + r.at * V, static_cast<size_t>(V)});
    };
    if (options.allowed)  // may be Python's: stays on this thread
      for (size_t i = 0; i < todo.size(); ++i) run(static_cast<int64_t>(i), 0);
    else parallel_for(static_cast<int64_t>(todo.size()), run);
  }
};

Search::Search(std::vector<std::vector<int64_t>> prompts, SearchOptions options)
    : state_(std::make_unique<State>()) {
  options.check(static_cast<int64_t>(prompts.size()));
  check<ValueError>(!prompts.empty(), "there are no prompts");
  State& s = *state_;
  s.options = std::move(options);
  s.options.token_scores |= s.options.trace;
  s.results.resize(prompts.size());
  if (s.options.trace) s.traces.resize(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    check<ValueError>(!prompts[i].empty(), "prompt ", i, " is empty: there must be a token to start from");
    s.prompt_lengths.push_back(prompts[i].size());
    Entry e{static_cast<int64_t>(i), {}, {}, {}, {}};
    if (s.beams()) {
      e.starts.assign(static_cast<size_t>(s.options.groups), 0);
      for (int64_t g = 0; g < s.options.groups; ++g) e.groups.emplace_back(s.options, e.prompt, prompts[i]);
    } else {
      e.own.assign(static_cast<size_t>(s.options.returns), {std::move(prompts[i]), {}, 0, 0, -1});
      e.ended.assign(e.own.size(), false);
    }
    s.entries.push_back(std::move(e));
  }
}
Search::~Search() = default;
Search::Search(Search&&) noexcept = default;

const SearchOptions& Search::options() const { return state_->options; }
bool Search::done() const { return state_->entries.empty(); }
int64_t Search::steps() const { return state_->steps; }
const Tensor& Search::live() const { return state_->live; }
const Tensor& Search::parents() const { return state_->parents; }
const Tensor& Search::tokens() const { return state_->tokens; }
std::vector<int64_t> Search::prompts() const {
  std::vector<int64_t> numbers;
  for (const auto& e : state_->entries) numbers.push_back(e.prompt);
  return numbers;
}
void Search::accept(const Tensor& logits) { state_->accept(logits); }
const std::vector<Completion>& Search::result(int64_t prompt) const {
  check<IndexError>(prompt >= 0 && prompt < static_cast<int64_t>(state_->results.size()), "there are ",
                    state_->results.size(), " prompts, got number ", prompt);
  return state_->results[static_cast<size_t>(prompt)];
}
const std::vector<std::vector<Considered>>& Search::trace(int64_t prompt) const {
  check<ValueError>(state_->options.trace, "trace: the search was made without the option trace");
  result(prompt);  // checks the number
  return state_->traces[static_cast<size_t>(prompt)];
}

[[noreturn]] static void refuse(int64_t prompt, float value) {
  check<ValueError>(value == value, "the model's logits for prompt ", prompt, " hold NaN");
  check<ValueError>(value != std::numeric_limits<float>::infinity(), "the model's logits for prompt ", prompt,
                    " hold inf");
  fail<ValueError>("no token may follow prompt ", prompt,
                   ": the constraints exclude them all, or all logits are -inf");
}

void Search::State::accept(const Tensor& given) {
  const NoGrad off;
  check<ValueError>(!entries.empty(), "the search is done: it takes no more logits");
  const int64_t rows = static_cast<int64_t>(entries.size()) * width,
                V = given.rank() > 0 ? given.size(-1).value() : 0;
  check(given.rank() >= 2 && V > 0 && given.numel() == rows * V, "logits must be [", entries.size(), ", ",
        width, ", V], got ", given);
  for (const auto& word : options.bad_words)
    for (int64_t token : word)
      check<ValueError>(token < V, "bad_words_ids: the token ", token, " is not in the vocabulary of ", V);
  Tensor logits = reshape(given.detach().to(cpu()), {Dim(rows), Dim(V)});  // the step's one read
  if (logits.dtype() != DType::float32) logits = cast(logits, DType::float32);
  if (beams()) {
    Beam::check_penalty(options, steps + 1);
    const auto best = best_continuations(logits);
    ++steps;
    for (size_t e = 0; e < entries.size(); ++e) {
      auto* step = options.trace ? &traces[static_cast<size_t>(entries[e].prompt)].emplace_back() : nullptr;
      for (size_t g = 0; g < entries[e].groups.size(); ++g)
        if (!entries[e].groups[g].over())
          entries[e].groups[g].advance(best[e][g], steps, static_cast<int64_t>(g), step);
    }
  } else {
    choose(logits);
  }
  ask();
  close();
}

// By entry and group. Without processors and groups the fused op reads the logits once; else they are changed
// in a copy.
std::vector<std::vector<Continuations>> Search::State::best_continuations(const Tensor& logits) {
  const int64_t n = Beam::wanted(options), V = logits.size(1).value(),
                L = static_cast<int64_t>(entries.size());
  std::vector<std::vector<Continuations>> best(entries.size());
  if (options.groups == 1 && !changes_scores(options, steps)) {
    const Tensor scores =
        full({Dim(L), Dim(width)}, -std::numeric_limits<double>::infinity(), DType::float32);
    each_alive([&](size_t, int64_t at, const Hypothesis& h) { scores.as<float>()[at] = h.score; });
    const int64_t m = std::min(n, width * V);
    const Tensors found = beam_step(logits, scores, Dim(m));
    for (size_t e = 0; e < entries.size(); ++e) {
      best[e].resize(1);
      for (int64_t i = static_cast<int64_t>(e) * m; i < static_cast<int64_t>(e + 1) * m; ++i) {
        const float score = found[0].as<float>()[i];
        const int64_t parent = found[1].as<int64_t>()[i];
        if (score > -std::numeric_limits<float>::infinity())
          best[e][0].push_back({score, parent, found[2].as<int64_t>()[i],
                                score - scores.as<float>()[static_cast<int64_t>(e) * width + parent]});
        else if (score != score || best[e][0].empty()) refuse(entries[e].prompt, score);
      }
    }
    return best;
  }
  const Tensor changed = log_softmax(logits);
  float* rows = changed.as<float>();
  change(rows, V);
  parallel_for(L, [&](int64_t entry, int) {
    const auto e = static_cast<size_t>(entry);
    std::map<int64_t, int64_t> taken;
    for (size_t g = 0; g < entries[e].groups.size(); ++g)
      best[e].push_back(of_group(entries[e], g, rows + (entry * width + entries[e].starts[g]) * V, V, taken));
  });
  return best;
}

// rows [beams, V] of the group; `taken`: tokens that earlier groups go on with, and how often.
Continuations Search::State::of_group(const Entry& entry, size_t g, const float* rows, int64_t V,
                                      std::map<int64_t, int64_t>& taken) const {
  const Beam& beam = entry.groups[g];
  Continuations best;
  if (beam.over()) return best;
  for (size_t j = 0; j < beam.alive().size(); ++j) {
    std::vector<float> row(rows + static_cast<int64_t>(j) * V, rows + static_cast<int64_t>(j + 1) * V);
    for (const auto& [token, times] : taken)
      row[static_cast<size_t>(token)] -= static_cast<float>(options.diversity * static_cast<double>(times));
    append_best(row, beam.alive()[j].score, static_cast<int64_t>(j), Beam::wanted(options), best);
  }
  if (best.empty()) refuse(entry.prompt, *rows);
  keep_best(best, Beam::wanted(options));
  int64_t go_on = options.groups > 1 ? options.beams / options.groups : 0;
  for (size_t i = 0; i < best.size() && go_on > 0; ++i)
    if (std::ranges::find(options.eos, best[i].token) == options.eos.end()) ++taken[best[i].token], --go_on;
  return best;
}

// One token for each sequence on its own.
void Search::State::choose(const Tensor& given) {
  const int64_t V = given.size(1).value();
  Tensor scores = given;
  std::vector<int64_t> rows;  // of the logits, for each sequence of an entry
  const int64_t each = options.returns;
  for (size_t e = 0; e < entries.size(); ++e)
    for (int64_t i = 0; i < each; ++i) rows.push_back(static_cast<int64_t>(e) * width + (width == 1 ? 0 : i));
  if (changes_scores(options, steps)) {
    scores = copy(given);
    change(scores.as<float>(), V);
  }
  std::vector<Drawn> drawn(rows.size(), {-1, 0});
  std::vector<std::vector<Drawn>> likeliest(options.trace ? rows.size() : 0);
  const float* data = scores.as<float>();
  const auto alive = [&](size_t i) {
    return !entries[i / static_cast<size_t>(each)].ended[i % static_cast<size_t>(each)];
  };
  if (options.sample) {
    parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t i, int) {
      if (!alive(static_cast<size_t>(i))) return;
      const int64_t seed = options.seeds[static_cast<size_t>(entries[static_cast<size_t>(i / each)].prompt)];
      drawn[static_cast<size_t>(i)] =
          draw_token(options, {data + rows[static_cast<size_t>(i)] * V, static_cast<size_t>(V)},
                     stream_uniform(seed, i % each, steps), kShown,
                     options.trace ? &likeliest[static_cast<size_t>(i)] : nullptr);
    });
  } else {
    const Tensor best = argmax(scores, 1), sums = options.token_scores ? log_softmax(scores) : Tensor();
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t token = best.as<int64_t>()[rows[i]];
      if (data[rows[i] * V + token] > -std::numeric_limits<float>::infinity())
        drawn[i] = {token, sums.defined() ? sums.as<float>()[rows[i] * V + token] : 0};
      if (options.trace) {
        Continuations best;
        append_best({sums.as<float>() + rows[i] * V, static_cast<size_t>(V)}, 0, 0, kShown, best);
        keep_best(best, kShown);
        for (const Continuation& c : best) likeliest[i].push_back({c.token, c.token_score});
      }
    }
  }
  for (size_t i = 0; i < rows.size(); ++i)
    if (alive(i) && drawn[i].token < 0) {
      const float* row = data + rows[i] * V;
      const float* bad = std::find_if(
          row, row + V, [](float x) { return x != x || x == std::numeric_limits<float>::infinity(); });
      refuse(entries[i / static_cast<size_t>(each)].prompt, bad == row + V ? 0 : *bad);
    }
  ++steps;
  if (options.trace)
    for (const Entry& e : entries) traces[static_cast<size_t>(e.prompt)].emplace_back();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!alive(i)) continue;
    Entry& e = entries[i / static_cast<size_t>(each)];
    const size_t j = i % static_cast<size_t>(each);
    Hypothesis& h = e.own[j];
    h.parent = width == 1 ? 0 : static_cast<int64_t>(j);
    h.ids.push_back(drawn[i].token);
    if (options.token_scores) h.token_scores.push_back(drawn[i].log_probability);
    const bool stopped = options.stop && options.stop(e.prompt, h.ids);  // is told of every token
    e.ended[j] = stopped || steps == options.max_new_tokens ||
                 std::ranges::find(options.eos, drawn[i].token) != options.eos.end();
    if (options.trace) record(e, j, drawn[i], likeliest[i]);
  }
}

// What the last step took for the sequence j of its own, and the likeliest others.
void Search::State::record(Entry& e, size_t j, const Drawn& taken, const std::vector<Drawn>& best) {
  Hypothesis& h = e.own[j];
  auto& step = traces[static_cast<size_t>(e.prompt)].back();
  const auto add = [&](const Drawn& d, Fate fate) {
    const float score = h.score + d.log_probability;
    step.push_back({static_cast<int64_t>(j), h.place, d.token, score, fate,
                    fate == Fate::finished ? score : std::nan("")});
  };
  const Fate fate = e.ended[j] ? Fate::finished : Fate::kept;
  int64_t place = -1;
  for (const Drawn& d : best) {
    if (d.token == taken.token) place = static_cast<int64_t>(step.size());
    add(d, d.token == taken.token ? fate : Fate::dropped);
  }
  if (place < 0) {  // less likely than those that are shown
    place = static_cast<int64_t>(step.size());
    add(taken, fate);
  }
  h.place = place;
  h.score += taken.log_probability;
}

// The next run: [L, n] with n the same for all. Where a sequence is no more another of its prompt stands in,
// and is not looked at.
void Search::State::ask() {
  std::vector<int64_t> from, parent, token;
  const int64_t n = beams() ? options.beams : options.returns;
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry& e = entries[i];
    if (over(e)) continue;
    from.push_back(static_cast<int64_t>(i));
    const size_t first = parent.size();
    for (size_t g = 0; g < e.groups.size(); ++g) {
      const int64_t before = std::exchange(e.starts[g], static_cast<int64_t>(parent.size() - first));
      if (e.groups[g].over()) continue;
      for (const Hypothesis& h : e.groups[g].alive()) {
        parent.push_back(before + h.parent);
        token.push_back(h.ids.back());
      }
    }
    for (const Hypothesis& h : e.own) {
      parent.push_back(h.parent);
      token.push_back(h.ids.back());
    }
    parent.resize(first + static_cast<size_t>(n), parent[first]);
    token.resize(first + static_cast<size_t>(n), token[first]);
  }
  live = ids_tensor({dim(from.size())}, from);
  parents = ids_tensor({dim(from.size()), Dim(n)}, parent);
  tokens = ids_tensor({dim(from.size()), Dim(n)}, token);
  width = n;
}

// Prompts that have all their sequences leave.
void Search::State::close() {
  for (Entry& e : entries) {
    if (!over(e)) continue;
    auto& out = results[static_cast<size_t>(e.prompt)];
    for (const Beam& beam : e.groups) out.insert(out.end(), beam.finished().begin(), beam.finished().end());
    std::ranges::stable_sort(out, std::ranges::greater{}, &Completion::score);
    if (static_cast<int64_t>(out.size()) > options.returns) out.resize(static_cast<size_t>(options.returns));
    const size_t prompt = prompt_lengths[static_cast<size_t>(e.prompt)];
    for (Hypothesis& h : e.own) {
      double sum = 0;
      for (float s : h.token_scores) sum += s;
      out.push_back(
          {{h.ids.begin() + static_cast<int64_t>(prompt), h.ids.end()}, sum, std::move(h.token_scores)});
    }
    check<ValueError>(static_cast<int64_t>(out.size()) == options.returns, "prompt ", e.prompt, ": only ",
                      out.size(), " sequences satisfy the constraints, num_return_sequences is ",
                      options.returns);
  }
  std::erase_if(entries, over);
}

void generate(Search& search, const StepFunction& step) {
  while (!search.done()) search.accept(step(search.live(), search.parents(), search.tokens()));
}

}  // namespace plmcore
