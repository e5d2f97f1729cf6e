// The inner loops of the trainers, compiled once per instruction set; kernels() are those of the CPU in use.
#pragma once

#include <cstdint>

#include "vectors/cooccurrences.h"

namespace plmcore::vectors {

constexpr int64_t kSentence = 1000;  // words at which word2vec cuts a sentence
constexpr int kExponent = 6;         // sigmoid's table is over [-6, 6]
constexpr int kSigmoid = 1000;       // its entries
constexpr int kPerUnit = kSigmoid / kExponent / 2;  // entries to 1, in whole numbers, as the original has it
constexpr int64_t kDraws = 100'000'000;  // entries of the original's table of words to draw

// What the threads of word2vec share. Rows of matrices have `stride` floats, zeros behind the first dim.
struct Word2VecModel {
  int file;  // int32 ids, 0 at the end of a sentence
  int64_t ids;
  int64_t vocabulary, stride, window, negative, epochs, words, threads;
  bool cbow;
  float rate;  // at the beginning
  float* input;  // [V, stride]
  float* output;  // [V, stride], null without negative sampling
  float* inner;  // [V, stride], null without hierarchical softmax
  const float* keep;  // [V]: a word is kept if a draw is not above
  const float* sigmoid;  // [kSigmoid]
  const float* cost;  // [2, kSigmoid]: -log(1 - sigmoid), -log(sigmoid)
  const int32_t* begins;  // [V + 1]: entries of the table before those of each word
  const int32_t* buckets;  // the word of each 2^shift-th entry
  int shift;
  const int64_t* paths;  // [V + 1]: where the inner nodes of a word begin
  const int32_t* points;  // inner nodes, from the root
  const uint8_t* codes;  // the turn at each
  float* now;  // the rate, shared
  int64_t* done;  // words, shared
};

struct Word2VecThread {  // int64 [7] in a checkpoint, with 0 loss and pairs
  uint64_t random;
  int64_t place;  // in the ids
  int64_t count;  // words of the epoch
  int64_t told;  // of those that `done` has
  int64_t left;  // epochs
  int64_t total;  // words of all epochs
  int64_t id;
  double loss;
  int64_t pairs;
};

// Rows: vector [width], its accumulators [width], bias, its accumulator, six unused; those of words, then
// those of contexts.
struct GloveModel {
  double* rows;
  int64_t vocabulary, width;
  double x_max, alpha, rate;
  int64_t stride() const { return 2 * width + 8; }
};

struct Kernels {
  // To the first sentence that begins at `until` words or later, or to the end. scratch: floats [2 stride]
  // and pointers and ids for the targets of a word, as word2vec_scratch says.
  void (*word2vec)(const Word2VecModel&, Word2VecThread&, int64_t until, void* scratch);
  // The sum of the costs.
  double (*glove)(const GloveModel&, const Record*, int64_t n);
};
const Kernels& kernels();

inline size_t word2vec_scratch(const Word2VecModel& m) {
  return static_cast<size_t>(2 * m.stride) * sizeof(float) +
         static_cast<size_t>(2 * m.window) * static_cast<size_t>(m.negative + 2) * sizeof(int32_t);
}

}  // namespace plmcore::vectors
