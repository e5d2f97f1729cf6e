// Session: one user of a model file. It pads rows of ids, runs entry points, pools, names labels and
// generates.
//
//   const plmcore::Model model = plmcore::Model::load("gpt2.plm");
//   plmcore::Session session(model);
//   plmcore::Options options = model.card().generation;
//   options.max_new_tokens = 40;
//   const auto found = session.generate({{464, 3797}}, options);  // of each prompt the best first
//
// Any number of sessions share a model, each in a thread of its own. A session is for one thread at a time: a
// second one that calls it meanwhile gets a BusyError. The model must outlive its sessions.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plmcore/generate.h"
#include "plmcore/program.h"

namespace plmcore {

// A tensor over the caller's memory, which must outlive it.
template <class T>
Tensor view(T* data, const Shape& shape, DType dtype) {
  return Tensor::borrow(shape, dtype, const_cast<void*>(static_cast<const void*>(data)), nullptr, nullptr);
}

// The ids of one sequence, with its special tokens: what Text::encode gives. `types`: its segments, as many,
// or none.
struct Row {
  std::vector<int64_t> ids, types;
};

struct Classified {
  std::string label;  // the likeliest; empty for a regression
  int64_t index = 0;
  double probability = 0;
  std::vector<double> probabilities;  // of all labels
  double value = 0;  // of a regression
};

struct Span {  // of tokens, with the sum of the logits of its ends
  int64_t begin = 0, end = 0;  // the last one included
  double score = 0;
};

// Told of each token as it comes; false ends the text of this prompt.
using Stream = std::function<bool(int64_t prompt, int64_t token)>;

class Session {
 public:
  using Named = std::map<std::string, Tensor>;

  // `threads`: how many of the pool's its calls use, 0: all. With 1 it waits for no other session: the way to
  // serve many at once.
  explicit Session(const Model& model, int threads = 0);
  Session(const Session&) = delete;

  const Model& model() const { return *model_; }

  // An entry point, or "main". Inputs and outputs by name; ValueError for a name that there is not.
  Named run(std::string_view entry, const Named& inputs);

  // A vector for each row, pooled as the card says.  -> float32 [B, C * modes]
  Tensor encode(const std::vector<Row>& rows);
  // The logits of `entry` for rows that are padded to one length, 0 where a mask is 0.
  Named forward(std::string_view entry, const std::vector<Row>& rows);

  std::vector<Classified> classify(const std::vector<Row>& rows);
  std::vector<std::vector<Classified>> tag(const std::vector<Row>& rows);  // for each token
  // The best spans of each row, at most `best` of at most `longest` tokens, the likeliest first. `from`: the
  // first token that may be part of an answer, for instance that of the passage behind a question.
  std::vector<std::vector<Span>> answer(const std::vector<Row>& rows, const std::vector<int64_t>& from = {},
                                        int64_t best = 1, int64_t longest = 30);

  // What follows each prompt: Options::returns sequences, the best first. Of a model with an encoder the
  // prompts are what it reads; `begun`: what the decoder begins with, by default its start token.
  // `stream` takes one sequence for each prompt, without beams.
  std::vector<std::vector<Completion>> generate(const std::vector<std::vector<int64_t>>& prompts,
                                                Options options, const Stream& stream = {},
                                                std::vector<std::vector<int64_t>> begun = {});
  // With the options of the card.
  std::vector<std::vector<Completion>> generate(const std::vector<std::vector<int64_t>>& prompts) {
    return generate(prompts, model_->card().generation);
  }

 private:
  class Use;  // one call
  void check_ids(const char* what, size_t row, const std::vector<int64_t>& ids) const;
  Named outputs(std::string_view entry, const Named& inputs);
  Named padded(const std::vector<Row>& rows) const;

  const Model* model_;
  int threads_;
  std::atomic<bool> busy_{false};
};

}  // namespace plmcore
