// The rules of a search for text: docs/generation.md.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

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

// The rules of Session::generate. A model file brings its own (Card::generation); a program changes what it
// wants otherwise.
struct Options : SearchOptions {
  Options() { max_new_tokens = 0; }
  // 0: not given. max_length and min_length count the prompt. Without any, 20 new tokens, or what the model
  // has positions for.
  int64_t max_length = 0, min_length = 0;
  int64_t seed = 0;  // prompt i draws from the stream seed + i, unless `seeds` has one for each
};

}  // namespace plmcore
