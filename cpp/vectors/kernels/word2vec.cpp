// word2vec over the sentences of one thread, draw for draw as the original program (Mikolov et al. 2013).
// A centre word w and a context give a vector h: a context's row of `input` (skip-gram) or the mean of all
// contexts' rows (CBOW). h is trained against rows t of `output` (w and words drawn) or of `inner` (the nodes
// on the way to w): g = (label - sigmoid(h.t)) rate; e += g t; t += g h; at the end e is added to the rows
// that h was made of. Distinct rows t are taken in groups: their products with h do not wait for each other,
// and each row is read twice and written once.
#include <unistd.h>

#include "kernels/simd.h"
#include "vectors/kernels.h"

namespace plmcore::PLM_ISA {

void word2vec(const vectors::Word2VecModel&, vectors::Word2VecThread&, int64_t until, void* scratch);

namespace {

using namespace vectors;

constexpr int kGroup = 8;
constexpr int64_t kBlock = 4096;  // ids that are read at a time

class Ids {
 public:
  Ids(const Word2VecModel& m, int64_t place) : m_(m), place_(place) {}
  int64_t place() const { return place_; }
  void seek(int64_t place) { place_ = place, n_ = at_ = 0; }
  bool next(int32_t& id) {
    if (at_ == n_ && !fill()) return false;
    id = block_[at_++];
    ++place_;
    return true;
  }

 private:
  bool fill() {
    const int64_t rest = m_.ids - place_, want = rest < kBlock ? rest : kBlock;
    at_ = n_ = 0;
    while (n_ < want) {  // what is left of a file that was cut short reads as the end of the text
      const ssize_t got = pread(m_.file, block_ + n_, static_cast<size_t>(want - n_) * 4, (place_ + n_) * 4);
      if (got < 4) break;
      n_ += got / 4;
    }
    for (int64_t i = 0; i < n_; ++i)
      if (block_[i] < 0 || block_[i] >= m_.vocabulary) n_ = i;
    return n_ > 0;
  }

  const Word2VecModel& m_;
  int64_t place_, at_ = 0, n_ = 0;
  int32_t block_[kBlock];
};

PLM_INLINE uint64_t draw(uint64_t& random) { return random = random * 25214903917 + 11; }

PLM_INLINE int32_t drawn_word(const Word2VecModel& m, uint64_t random) {
  const auto entry = static_cast<int32_t>((random >> 16) % static_cast<uint64_t>(kDraws));
  int32_t word = m.buckets[entry >> m.shift];
  while (m.begins[word + 1] <= entry) ++word;
  return word ? word : static_cast<int32_t>(random % static_cast<uint64_t>(m.vocabulary - 1)) + 1;
}

// The gradient times the rate. skips: as hierarchical softmax does outside of the sigmoid's table.
PLM_INLINE float gradient(const Word2VecModel& m, float f, int label, bool skips, float rate, double& loss) {
  if (f >= kExponent && (skips || f > kExponent)) {
    loss += label ? 0 : f;
    return skips ? 0 : static_cast<float>(label - 1) * rate;
  }
  if (f <= -kExponent && (skips || f < -kExponent)) {
    loss += label ? -f : 0;
    return skips ? 0 : static_cast<float>(label) * rate;
  }
  const int entry = static_cast<int>((f + kExponent) * kPerUnit);
  loss += m.cost[label * kSigmoid + entry];
  return (static_cast<float>(label) - m.sigmoid[entry]) * rate;
}

struct Group {
  float* rows[kGroup];
  int labels[kGroup];
  int n = 0;
};

template <int n>
void train(const Word2VecModel& m, const float* h, float* e, const Group& group, bool skips, float rate,
           double& loss) {
  vf sums[n] = {};
  for (int64_t c = 0; c < m.stride; c += kF) {
    const vf x = load(h + c);
    for (int k = 0; k < n; ++k) sums[k] += x * load(group.rows[k] + c);
  }
  float g[n];
  for (int k = 0; k < n; ++k) g[k] = gradient(m, reduce_add(sums[k]), group.labels[k], skips, rate, loss);
  for (int64_t c = 0; c < m.stride; c += kF) {
    const vf x = load(h + c);
    vf y = load(e + c);
    for (int k = 0; k < n; ++k) {
      const vf t = load(group.rows[k] + c);
      y += g[k] * t;
      store(group.rows[k] + c, t + g[k] * x);
    }
    store(e + c, y);
  }
}

void flush(const Word2VecModel& m, const float* h, float* e, Group& group, bool skips, float rate,
           double& loss) {
  switch (group.n) {
    case 1: train<1>(m, h, e, group, skips, rate, loss); break;
    case 2: train<2>(m, h, e, group, skips, rate, loss); break;
    case 3: train<3>(m, h, e, group, skips, rate, loss); break;
    case 4: train<4>(m, h, e, group, skips, rate, loss); break;
    case 5: train<5>(m, h, e, group, skips, rate, loss); break;
    case 6: train<6>(m, h, e, group, skips, rate, loss); break;
    case 7: train<7>(m, h, e, group, skips, rate, loss); break;
    case 8: train<8>(m, h, e, group, skips, rate, loss); break;
    default: break;
  }
  group.n = 0;
}

// h against the word and the words drawn for it.  targets [negative]
void train_word(const Word2VecModel& m, const float* h, float* e, int32_t word, const int32_t* targets,
                float rate, double& loss) {
  Group group;
  if (m.inner) {
    for (int64_t d = m.paths[word]; d < m.paths[word + 1]; ++d) {
      group.rows[group.n] = m.inner + m.points[d] * m.stride;
      group.labels[group.n++] = 1 - m.codes[d];
      if (group.n == kGroup) flush(m, h, e, group, true, rate, loss);
    }
    flush(m, h, e, group, true, rate, loss);
  }
  if (!m.output) return;
  group.rows[0] = m.output + word * m.stride;
  group.labels[0] = 1;
  group.n = 1;
  for (int64_t d = 0; d < m.negative; ++d) {
    if (targets[d] == word) continue;
    float* row = m.output + targets[d] * m.stride;
    bool there = group.n == kGroup;  // a row that was drawn twice is trained twice
    for (int k = 0; k < group.n; ++k) there |= group.rows[k] == row;
    if (there) flush(m, h, e, group, false, rate, loss);
    group.rows[group.n] = row;
    group.labels[group.n++] = 0;
  }
  flush(m, h, e, group, false, rate, loss);
}

PLM_INLINE void draw_targets(const Word2VecModel& m, uint64_t& random, int32_t* targets, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    targets[i] = drawn_word(m, draw(random));
    const float* row = m.output + targets[i] * m.stride;
    for (int64_t c = 0; c < m.stride; c += 16) __builtin_prefetch(row + c, 1, 2);
  }
}

void zero(float* x, int64_t n) {
  for (int64_t c = 0; c < n; c += kF) store(x + c, vf{});
}
void add(float* x, const float* y, int64_t n) {
  for (int64_t c = 0; c < n; c += kF) store(x + c, load(x + c) + load(y + c));
}

// The rate falls with the words that all threads have read.
void set_rate(const Word2VecModel& m, Word2VecThread& t) {
  const int64_t done = __atomic_add_fetch(m.done, t.count - t.told, __ATOMIC_RELAXED);
  t.told = t.count;
  const auto all = static_cast<float>(m.epochs * m.words + 1);
  float rate = m.rate * (1 - static_cast<float>(done) / all);
  if (rate < m.rate * 0.0001) rate = static_cast<float>(m.rate * 0.0001);
  __atomic_store(m.now, &rate, __ATOMIC_RELAXED);
}

// The next sentence, without the frequent words that a draw leaves out; false at the end of the text.
bool read_sentence(const Word2VecModel& m, Word2VecThread& t, Ids& ids, int32_t* sentence, int64_t& length) {
  for (int32_t word; ids.next(word);) {
    ++t.count;
    ++t.total;
    if (word == 0) return true;
    if (m.keep && m.keep[word] < static_cast<float>(draw(t.random) & 0xFFFF) / 65536.0f) continue;
    sentence[length++] = word;
    if (length == kSentence) return true;
  }
  return false;
}

}  // namespace

void word2vec(const Word2VecModel& m, Word2VecThread& t, int64_t until, void* scratch) {
  float *const h = static_cast<float*>(scratch), *const e = h + m.stride;
  auto* const contexts = reinterpret_cast<int32_t*>(e + m.stride);
  int32_t* const targets = contexts + 2 * m.window;
  int32_t sentence[kSentence];
  int64_t length = 0, position = 0;
  const int64_t begin = m.ids / m.threads * t.id;
  Ids ids(m, t.place);
  while (t.left > 0) {
    if (length == 0 && t.total >= until) break;
    if (t.count - t.told > 10000) set_rate(m, t);
    if (length == 0) {
      position = 0;
      if (!read_sentence(m, t, ids, sentence, length) || t.count > m.words / m.threads) {
        __atomic_add_fetch(m.done, t.count - t.told, __ATOMIC_RELAXED);
        t.count = t.told = length = 0;
        ids.seek(begin);
        --t.left;
        continue;
      }
    }
    float rate;
    __atomic_load(m.now, &rate, __ATOMIC_RELAXED);
    const auto b = static_cast<int64_t>(draw(t.random) % static_cast<uint64_t>(m.window));
    int64_t n = 0;
    for (int64_t c = position - m.window + b; c <= position + m.window - b; ++c)
      if (c >= 0 && c < length && c != position) contexts[n++] = sentence[c];
    if (n > 0 && m.cbow) {
      const int32_t word = sentence[position];
      if (m.output) draw_targets(m, t.random, targets, m.negative);
      zero(h, m.stride);
      zero(e, m.stride);
      for (int64_t i = 0; i < n; ++i) add(h, m.input + contexts[i] * m.stride, m.stride);
      const auto count = static_cast<float>(n);
      for (int64_t c = 0; c < m.stride; c += kF) store(h + c, load(h + c) / count);
      train_word(m, h, e, word, targets, rate, t.loss);
      for (int64_t i = 0; i < n; ++i) add(m.input + contexts[i] * m.stride, e, m.stride);
      ++t.pairs;
    } else if (n > 0) {
      const int32_t word = sentence[position];
      if (m.output) draw_targets(m, t.random, targets, n * m.negative);
      for (int64_t i = 0; i < n; ++i) {
        float* row = m.input + contexts[i] * m.stride;
        zero(e, m.stride);
        train_word(m, row, e, word, targets + i * m.negative, rate, t.loss);
        add(row, e, m.stride);
      }
      t.pairs += n;
    }
    if (++position >= length) length = 0;
  }
  t.place = ids.place();
}

}  // namespace plmcore::PLM_ISA
