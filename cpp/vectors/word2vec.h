// The trainer of word2vec: skip-gram and CBOW, with negative sampling and hierarchical softmax.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/file.h"
#include "vectors/kernels.h"

namespace plmcore::vectors {

struct Word2VecOptions {
  bool cbow;
  int64_t window, negative;
  bool hierarchical;
  float sample, rate;
  int64_t epochs, threads;
  uint64_t seed;  // 0: the draws of the original program
};

// The way to each word in a Huffman tree over counts: the inner nodes from the root, and the turns.
struct Paths {
  std::vector<int64_t> begins;
  std::vector<int32_t> points;
  std::vector<uint8_t> codes;
};
Paths huffman(const std::vector<int64_t>& counts);

// The original draws words from a table of kDraws entries; word i has those from begins[i] to begins[i + 1].
std::vector<int32_t> table_begins(const std::vector<int64_t>& counts);

// Matrices are the caller's, [V, stride] with rows of a multiple of 16.
class Word2Vec {
 public:
  Word2Vec(const std::string& ids, const std::vector<int64_t>& counts, int64_t stride,
           const Word2VecOptions& options);

  // Trains each thread up to the first sentence that begins at `until` words of its own or later. Returns the
  // sums of losses and pairs. input, output, inner: null where there is none.
  struct Sums {
    double loss;
    int64_t pairs;
  };
  Sums train(float* input, float* output, float* inner, int64_t until);
  // ShapeError unless matrices are those of the options.
  void check_rows(int64_t rows, int64_t stride, bool output, bool inner) const;
  // What a checkpoint keeps: the threads, the rate and the words done.
  std::vector<int64_t> state() const;
  void set_state(const std::vector<int64_t>& state);
  int64_t words() const { return model_.words; }  // of an epoch
  int64_t done() const { return done_; }
  bool finished() const;
  float rate() const { return now_; }

 private:
  FileHandle file_;
  std::vector<float> keep_, sigmoid_, cost_;
  std::vector<int32_t> begins_, buckets_;
  Paths paths_;
  float now_;
  int64_t done_ = 0;
  Word2VecModel model_{};
  std::vector<Word2VecThread> threads_;
};

// The first vectors: (u - 0.5) / dim by the original's generator.  input [V, stride]
void first_vectors(float* input, int64_t vocabulary, int64_t dim, int64_t stride, uint64_t seed);

}  // namespace plmcore::vectors
