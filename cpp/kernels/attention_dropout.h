// The dropout mask of attention's weights: half a random word per weight, the same in forward and backward.
#pragma once

#include "kernels/attention_layout.h"
#include "kernels/random.h"

namespace plmcore::PLM_ISA {

constexpr int64_t kMaskGroup = 128, kMaskBlocks = 16;  // elements that share random blocks, and the blocks

class WeightDropout {
 public:
  WeightDropout(const KernelArgs& args, const AttentionLayout& at)
      : p_(args.f("dropout")),
        philox_(p_ > 0 ? at.in[kRandom].as<int64_t>() : no_state_),
        threshold_(static_cast<uint32_t>(p_ * 65536 + 0.5)),
        groups_(ceil_div(at.S, kMaskGroup)) {}
  explicit operator bool() const { return p_ > 0; }

  // Multiplies the weights w[0, n) of row `row` (of all rows of lse), keys from `key` on, by 0 or 1 / (1 -
  // p). They take random_half of core/philox.h, each row from a new group of elements on.
  template <class A>
  void apply(int64_t row, int64_t key, int64_t n, A* w) const {
    for (int64_t j = 0; j < n;) {
      const int64_t begin = (key + j) % kMaskGroup, count = least(n - j, kMaskGroup - begin);
      A factor[kMaskGroup];
      draw(row * groups_ + (key + j) / kMaskGroup, factor);
      for (int64_t k = 0; k < count; ++k) w[j + k] *= factor[begin + k];
      j += count;
    }
  }

 private:
  template <class A>
  void draw(int64_t group, A* factor) const {
    const A keep = static_cast<A>(1 / (1 - p_));
    for (int64_t block = 0; block < kMaskBlocks; block += kF) {
      const RandomWords r = philox_(static_cast<uint64_t>(group * kMaskBlocks + block));
      for (int word = 0; word < 4; ++word)
        for (int lane = 0; lane < kF; ++lane) {
          factor[16 * word + block + lane] = (r.word[word][lane] & 0xffffu) >= threshold_ ? keep : A(0);
          factor[64 + 16 * word + block + lane] = r.word[word][lane] >> 16 >= threshold_ ? keep : A(0);
        }
    }
  }

  const int64_t no_state_[2] = {};
  const double p_;
  const Philox philox_;
  const uint32_t threshold_;
  const int64_t groups_;
};

}  // namespace plmcore::PLM_ISA
