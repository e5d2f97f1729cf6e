// What a model file says of its model beside the programs: docs/program-format.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plmcore/options.h"
#include "plmcore/tensor.h"

namespace plmcore {

// One vector for a sequence, of those of its tokens. Several modes stand side by side: cls, lasttoken, max,
// mean, mean_sqrt_len_tokens, weightedmean.
struct Pooling {
  std::vector<std::string> modes = {"mean"};
  bool normalise = false;  // to the length 1
  int64_t max_length = 0;  // tokens of a text; 0: any number
};

// How rows of several lengths become one batch.
struct Padding {
  bool left = false;
  int64_t id = 0, type = 0;
};

// A tokenizer: the vocabulary, and what stands around texts. `Text` runs it.
struct TextCard {
  struct Part {
    int text;  // 0, 1: the first or second text; -1: the token `id`
    int64_t id, type;
  };
  struct Added {  // a token that is looked for before all others
    int64_t id;
    bool special, lstrip, rstrip, single_word, normalized;
  };
  std::string kind;  // wordpiece, byte-bpe, unigram; another one is not served
  Tensor tokens, ends;  // uint8 [n]: the tokens by id, one after the other; int64 [V]: where each ends
  Tensor merges;  // byte-bpe: int32 [M, 3], left, right and both of a merge, the first to be merged first
  Tensor scores;  // unigram: float32 [V]
  Tensor normalisation;  // unigram: the normalisation map of the sentencepiece model, uint8 [n]
  std::vector<Added> added;
  std::vector<Part> single, pair;
  std::map<std::string, int64_t> settings;
  std::string prefix;  // wordpiece: of a piece inside a word
};

struct Card {
  std::string family, head;  // "gpt2", "causal-lm"
  std::string main;  // the entry point that is the forward pass
  int64_t vocabulary = 0;
  int64_t longest = 0;  // tokens that there are positions for; 0: any number
  std::map<std::string, std::vector<int64_t>> ids;  // special tokens: bos, eos, pad, decoder_start, mask, ...
  std::vector<std::string> labels;  // of a classifier
  std::string problem;  // single_label_classification, multi_label_classification, regression
  Pooling pooling;
  Padding padding;
  Options generation;
  TextCard text;  // kind "" where the file has no tokenizer

  int64_t id(const std::string& role) const;  // the first of a role; -1 where there is none
};

}  // namespace plmcore
