#include "vectors/word2vec.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "plmcore/error.h"
#include "plmcore/threads.h"

namespace plmcore::vectors {
namespace {

constexpr int64_t kFields = 7;  // of a thread in a checkpoint

}  // namespace

Paths huffman(const std::vector<int64_t>& counts) {
  const auto V = static_cast<int64_t>(counts.size());
  std::vector<int64_t> count(static_cast<size_t>(2 * V), INT64_C(1'000'000'000'000'000)),
      parent(count.size());
  std::vector<uint8_t> turn(count.size());
  std::copy(counts.begin(), counts.end(), count.begin());
  int64_t leaf = V - 1, node = V;  // the smallest of each that has no parent
  const auto smallest = [&] {
    return leaf >= 0 && count[static_cast<size_t>(leaf)] < count[static_cast<size_t>(node)] ? leaf-- : node++;
  };
  for (int64_t a = 0; a < V - 1; ++a) {
    const auto one = static_cast<size_t>(smallest()), other = static_cast<size_t>(smallest()),
               joint = static_cast<size_t>(V + a);
    count[joint] = count[one] + count[other];
    parent[one] = parent[other] = V + a;
    turn[other] = 1;
  }
  Paths paths;
  std::vector<int64_t> way;
  for (int64_t a = 0; a < V; ++a) {
    way.clear();
    for (int64_t b = a; b != 2 * V - 2; b = parent[static_cast<size_t>(b)]) way.push_back(b);
    paths.begins.push_back(static_cast<int64_t>(paths.points.size()));
    int64_t above = 2 * V - 2;
    for (auto b = way.rbegin(); b != way.rend(); ++b) {
      paths.points.push_back(static_cast<int32_t>(above - V));
      paths.codes.push_back(turn[static_cast<size_t>(*b)]);
      above = *b;
    }
  }
  paths.begins.push_back(static_cast<int64_t>(paths.points.size()));
  return paths;
}

std::vector<int32_t> table_begins(const std::vector<int64_t>& counts) {
  double all = 0;
  for (int64_t count : counts) all += std::pow(static_cast<double>(count), 0.75);
  std::vector<int32_t> begins = {0};
  double share = 0;
  for (size_t i = 0; i + 1 < counts.size(); ++i) {
    share += std::pow(static_cast<double>(counts[i]), 0.75) / all;
    auto last =
        static_cast<int64_t>(share * static_cast<double>(kDraws));  // the first with last / kDraws > share
    while (last > 0 && static_cast<double>(last - 1) / static_cast<double>(kDraws) > share) --last;
    while (!(static_cast<double>(last) / static_cast<double>(kDraws) > share)) ++last;
    last = std::max<int64_t>(last, begins.back());  // each word has an entry
    begins.push_back(static_cast<int32_t>(std::min(last + 1, kDraws)));
  }
  begins.push_back(static_cast<int32_t>(kDraws));
  return begins;
}

Word2Vec::Word2Vec(const std::string& ids, const std::vector<int64_t>& counts, int64_t stride,
                   const Word2VecOptions& o)
    : file_(ids, O_RDONLY), now_(o.rate) {
  Word2VecModel& m = model_;
  struct stat info{};
  if (fstat(file_.get(), &info) != 0) system_failed("read", ids, errno);
  m.file = file_.get();
  m.ids = info.st_size / static_cast<int64_t>(sizeof(int32_t));
  m.vocabulary = static_cast<int64_t>(counts.size());
  check<ValueError>(m.vocabulary > 2,
                    "word2vec: the text must have at least two words that are seen "
                    "min_count times, got ",
                    std::max<int64_t>(m.vocabulary - 1, 0));
  check<ValueError>(o.window >= 1 && o.window <= kSentence && o.negative >= 0 && o.negative <= 1000 &&
                        o.epochs >= 1 && o.threads >= 1 && o.threads <= 256 && o.rate > 0 && o.sample >= 0 &&
                        stride % 16 == 0 && stride > 0,
                    "word2vec: window must be 1 to ", kSentence,
                    ", negative 0 to 1000, epochs at least 1, threads "
                    "1 to 256, lr above 0 and sample not below 0");
  check<ValueError>(o.negative > 0 || o.hierarchical,
                    "word2vec: negative must be at least 1 unless hierarchical is true, got 0");
  m.stride = stride;
  m.window = o.window;
  m.negative = o.negative;
  m.epochs = o.epochs;
  m.threads = o.threads;
  m.cbow = o.cbow;
  m.rate = o.rate;
  for (int64_t count : counts) m.words += count;
  if (o.sample > 0) {  // in the original's precisions
    const float usual = o.sample * static_cast<float>(m.words);
    for (int64_t count : counts) {
      const auto c = static_cast<double>(count);
      keep_.push_back(static_cast<float>(
          (std::sqrt(static_cast<double>(static_cast<float>(count) / usual)) + 1) * usual / c));
    }
    m.keep = keep_.data();
  }
  cost_.resize(2 * kSigmoid);
  for (int i = 0; i < kSigmoid; ++i) {
    const float e = static_cast<float>(std::exp((static_cast<float>(i) / kSigmoid * 2 - 1) * kExponent));
    const float s = e / (e + 1);
    sigmoid_.push_back(s);
    cost_[static_cast<size_t>(i)] = -std::log(1 - s);
    cost_[static_cast<size_t>(kSigmoid + i)] = -std::log(s);
  }
  m.sigmoid = sigmoid_.data();
  m.cost = cost_.data();
  if (o.negative > 0) {
    begins_ = table_begins(counts);
    // Buckets of about half a word, not below 16 entries.
    const auto entries = static_cast<uint64_t>(std::max<int64_t>(kDraws / (2 * m.vocabulary), 16));
    m.shift = std::bit_width(entries) - 1;
    for (int32_t entry = 0, word = 0; entry < kDraws; entry += 1 << m.shift) {
      while (begins_[static_cast<size_t>(word) + 1] <= entry) ++word;
      buckets_.push_back(word);
    }
    m.begins = begins_.data();
    m.buckets = buckets_.data();
  }
  if (o.hierarchical) {
    paths_ = huffman(counts);
    m.paths = paths_.begins.data();
    m.points = paths_.points.data();
    m.codes = paths_.codes.data();
  }
  m.now = &now_;
  m.done = &done_;
  for (int64_t i = 0; i < o.threads; ++i)
    threads_.push_back({static_cast<uint64_t>(i) + o.seed * 0x9E3779B97F4A7C15, m.ids / o.threads * i, 0, 0,
                        o.epochs, 0, i, 0, 0});
}

Word2Vec::Sums Word2Vec::train(float* input, float* output, float* inner, int64_t until) {
  model_.input = input;
  model_.output = output;
  model_.inner = inner;
  std::vector<std::vector<float>> scratch(threads_.size());
  parallel_for(static_cast<int64_t>(threads_.size()), [&](int64_t i, int) {
    auto& memory = scratch[static_cast<size_t>(i)];
    memory.resize(word2vec_scratch(model_) / sizeof(float) + 1);
    Word2VecThread thread = threads_[static_cast<size_t>(i)];
    kernels().word2vec(model_, thread, until, memory.data());
    threads_[static_cast<size_t>(i)] = thread;
  });
  Sums sums{};
  for (Word2VecThread& thread : threads_) {
    sums.loss += thread.loss;
    sums.pairs += thread.pairs;
    thread.loss = 0;
    thread.pairs = 0;
  }
  return sums;
}

void Word2Vec::check_rows(int64_t rows, int64_t stride, bool output, bool inner) const {
  check(rows == model_.vocabulary && stride == model_.stride, "word2vec: matrices must be [",
        model_.vocabulary, ", ", model_.stride, "], got [", rows, ", ", stride, "]");
  check(output == (model_.begins != nullptr) && inner == (model_.paths != nullptr),
        "word2vec: there must be an output matrix for negative sampling, an inner one for hierarchical "
        "softmax");
}

bool Word2Vec::finished() const {
  return std::all_of(threads_.begin(), threads_.end(), [](const Word2VecThread& t) { return t.left == 0; });
}

std::vector<int64_t> Word2Vec::state() const {
  std::vector<int64_t> state = {done_, std::bit_cast<int32_t>(now_)};
  for (const Word2VecThread& t : threads_)
    state.insert(state.end(),
                 {static_cast<int64_t>(t.random), t.place, t.count, t.told, t.left, t.total, t.id});
  return state;
}

void Word2Vec::set_state(const std::vector<int64_t>& state) {
  check<ValueError>(state.size() == 2 + threads_.size() * kFields, "the state must have ",
                    2 + threads_.size() * kFields, " numbers, got ", state.size());
  const int64_t* at = state.data() + 2;
  for (size_t i = 0; i < threads_.size(); ++i, at += kFields)
    check<ValueError>(at[1] >= 0 && at[1] <= model_.ids && at[4] >= 0 && at[4] <= model_.epochs &&
                          at[6] == static_cast<int64_t>(i),
                      "the state of a thread does not belong to this text");
  done_ = state[0];
  now_ = std::bit_cast<float>(static_cast<int32_t>(state[1]));
  at = state.data() + 2;
  for (Word2VecThread& t : threads_) {
    t = {static_cast<uint64_t>(at[0]), at[1], at[2], at[3], at[4], at[5], at[6], 0, 0};
    at += kFields;
  }
}

void first_vectors(float* input, int64_t vocabulary, int64_t dim, int64_t stride, uint64_t seed) {
  uint64_t random = seed;
  for (int64_t word = 0; word < vocabulary; ++word, input += stride)
    for (int64_t c = 0; c < dim; ++c) {
      random = random * 25214903917 + 11;
      input[c] = static_cast<float>((static_cast<float>(random & 0xFFFF) / 65536.0f - 0.5) /
                                    static_cast<double>(dim));
    }
}

}  // namespace plmcore::vectors
