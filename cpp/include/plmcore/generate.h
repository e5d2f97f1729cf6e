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
#include "plmcore/options.h"
#include "plmcore/program.h"

namespace plmcore {

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
  // Prompts that run together. Those of a model that takes no padding have one length.
  struct Group {
    std::vector<int64_t> places;  // among the prompts of the last run, ascending
    Named state;
    int64_t room = 0;  // places for tokens that are free
  };
  Tensor run(Group& group, const char* entry, const Named& given);  // replaces the state; -> logits, if any
  Tensor start(Group& group);
  Tensor step(Group& group, const Tensor& live, const Tensor& parents, const Tensor& tokens);
  Tensor joined(const Tensors& logits) const;  // of the groups, in the order of the prompts

  const Model* model_;
  std::vector<std::vector<int64_t>> prompts_, sources_;
  std::vector<Group> groups_;
};

// The attention of such a step: the keys and values of n tokens for each of B prompts go to the slots of a
// cache [B, P, 2, H, D] from `position` on, and the tokens look at the cache.   qkv [B, n, 3 H D] -> [B, n, H
// D]
Tensor attend_cached(const Tensor& qkv, const Tensor& cache, Dim position,
                     const AttentionOptions& options = {});

}  // namespace plmcore
