// Search for the tokens that follow a prompt, over any model: greedy, sampling, beams, diverse beams. The
// caller owns the model. A Search says which tokens to run next and takes the logits; `generate` is that loop
// over a function. Shapes: L live prompts, n sequences of each, V vocabulary. docs/generation.md has the
// rules.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "plmcore/ops.h"
#include "plmcore/program.h"

namespace plmcore {

enum class EarlyStopping { no, yes, never };

struct SearchOptions {
  int64_t max_new_tokens = 20, min_new_tokens = 0;
  std::vector<int64_t> eos;  // tokens that end a sequence
  int64_t returns = 1;  // sequences for each prompt
  // Beams: `beams` of them in `groups` groups of their own; a group's scores lose `diversity` for each
  // earlier group that took a token.
  int64_t beams = 1, groups = 1;
  double diversity = 0;
  double length_penalty = 1;  // score = log-probability / length^penalty
  bool gnmt = false;  // ... / ((5 + length) / 6)^penalty
  EarlyStopping early_stopping = EarlyStopping::no;
  // Sampling; a prompt's numbers depend on its seed alone.
  bool sample = false;
  double temperature = 1, top_p = 1, typical_p = 1;
  int64_t top_k = 0;  // 0: all
  std::vector<int64_t> seeds;  // one for each prompt
  // What changes the scores before a choice.
  double repetition_penalty = 1;
  int64_t no_repeat_ngram = 0;  // 0: off
  std::vector<std::vector<int64_t>> bad_words;
  std::vector<int64_t> forced_first,
      forced_last;  // the first token, the last of max_new_tokens: one of these
  // Called on the thread of accept with the prompt's number and its tokens so far: those that may follow;
  // whether it is complete.
  std::function<std::vector<int64_t>(int64_t, std::span<const int64_t>)> allowed;
  std::function<bool(int64_t, std::span<const int64_t>)> stop;
  bool token_scores = false;  // keep the log-probability of each token
  bool trace = false;  // keep what each step looked at, and token_scores

  void check(int64_t prompts) const;  // ValueError that names the option
};

struct Completion {
  std::vector<int64_t> tokens;  // those after the prompt, with the one that ended it
  double score = 0;  // of beams: with the length penalty; else the sum of token_scores, if they are kept
  std::vector<float> token_scores;
};

// What became of a continuation that a step looked at.
enum class Fate { kept, dropped, finished };

// One of the continuations that a step looked at: of beams the best ones, else the token that was taken and
// the likeliest others.
struct Considered {
  int64_t group;  // of diverse beams; of samples, which of them
  int64_t parent;  // what it continues: its number among those of the step before, -1 for the prompt
  int64_t token;
  float score;  // the sum of the log-probabilities of the new tokens
  Fate fate;
  double final_score;  // of a finished one: with the length penalty; else NaN
};

class Search {
 public:
  Search(std::vector<std::vector<int64_t>> prompts, SearchOptions options);
  ~Search();
  Search(Search&&) noexcept;

  const SearchOptions& options() const;
  bool done() const;
  int64_t steps() const;  // times that logits were accepted
  // The next run of the model. At first these are undefined: it runs the prompts. Then live[i] is the place
  // of the i-th live prompt in the run before, parents[i, j] the sequence of it, there, that tokens[i, j]
  // continues.
  const Tensor& live() const;  // int64 [L]
  const Tensor& parents() const;  // int64 [L, n]
  const Tensor& tokens() const;  // int64 [L, n]
  std::vector<int64_t> prompts() const;  // the numbers of the live prompts
  void accept(const Tensor& logits);  // [L, n, V] or [L * n, V]; a ValueError leaves the search where it was

  const std::vector<Completion>& result(int64_t prompt) const;  // the best first; complete when done
  const std::vector<std::vector<Considered>>& trace(
      int64_t prompt) const;  // by step, with SearchOptions::trace

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// step(live, parents, tokens) -> logits.
using StepFunction = std::function<Tensor(const Tensor& live, const Tensor& parents, const Tensor& tokens)>;
void generate(Search& search, const StepFunction& step);

// Runs the entry points of an exported model (docs/program-format.md) as the step function of a search:
//   Search search(prompts, options);
//   generate(search, Decoder(model, prompts));
// What the model carries from step to step stays here. ValueError where the file has no such entry points.
class Decoder {
 public:
  // `sources`: what the encoder reads, where there is one; a prompt is then what the decoder begins with.
  Decoder(const Model& model, std::vector<std::vector<int64_t>> prompts,
          std::vector<std::vector<int64_t>> sources = {});
  Tensor operator()(const Tensor& live, const Tensor& parents, const Tensor& tokens);

 private:
  using Named = std::map<std::string, Tensor>;
  Tensor run(const char* entry, Named given);  // with the state, which it replaces; -> logits, if any

  const Model* model_;
  std::vector<std::vector<int64_t>> prompts_, sources_;
  Named state_;
  int64_t room_ = 0;  // places that are free
  int64_t alive_ = 0;  // prompts of the state
};

// The attention of such a step: the keys and values of n tokens for each of B prompts go to the slots of a
// cache [B, P, 2, H, D] from `position` on, and the tokens look at the cache.   qkv [B, n, 3 H D] -> [B, n, H
// D]
Tensor attend_cached(const Tensor& qkv, const Tensor& cache, Dim position,
                     const AttentionOptions& options = {});

}  // namespace plmcore
