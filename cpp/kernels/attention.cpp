// out = softmax(scale q k^T + bias, over the keys a query may see) v, for each head.
//
// A task is one head and a block of queries. It walks the keys in blocks (one block up to 512 keys): k is
// packed into transposed panels and v into panels of columns, once for all queries of the task; then for 24
// queries at a time the scores, the softmax and the product with v stay in the first- and second-level cache.
// With several key blocks the running maximum m and sum l of each query are corrected as it goes (online
// softmax), so the memory is linear in length. Traffic: q, k, v read and out written once per task; scores
// never leave the worker's space unless they are asked for. Scores are kept in base 2 (scaled by log2(e)),
// the saved log-sums too: m and log2(l) apart, because their sum would drop the latter for scores of -1e15; m
// is -inf for a query without keys.
#include "kernels/attention_decode.h"
#include "kernels/attention_dropout.h"
#include "kernels/attention_mask.h"
#include "kernels/attention_tiles.h"
#include "kernels/math.h"

namespace plmcore::PLM_ISA {
namespace {

template <class T>
class Forward {
 public:
  using A = typename Lane<T>::Scalar;
  static constexpr int P = kPanel<A>, R = kTileRows;

  Forward(const KernelArgs& args, const AttentionLayout& at)
      : args_(args),
        at_(at),
        dropout_(args, at),
        weights_(args.i("weights") ? args.out[2].as<T>() : nullptr),
        space_(at.B * at.H, at.T, at.S, at.D, at.ragged, weights_),
        chunks_(ceil_div(at.longest_q, space_.queries)),
        width_(round_up(at.D, P)) {}

  void run() {
    parallel_for(at_.B * at_.H * chunks_, [&](int64_t task, int worker) {
      // Later queries of a causal pattern see more keys: longest first.
      const int64_t chunk = chunks_ - 1 - task / (at_.B * at_.H), head = task % (at_.B * at_.H);
      const int64_t b = head / at_.H, h = head % at_.H;
      const Sequence s = at_.sequence(b);
      const int64_t i = chunk * space_.queries;
      if (i < s.T) Task(*this, b, h, s, worker).run(i, least(space_.queries, s.T - i));
    });
  }

 private:
  // One head, queries [i0, i0 + n).
  class Task {
   public:
    Task(const Forward& f, int64_t b, int64_t h, const Sequence& s, int worker)
        : f_(f),
          b_(b),
          h_(h),
          s_(s),
          D_(f.at_.D),
          width_(f.width_),
          rules_{Pattern(f.args_, f.at_, b, s), {f.at_.in[kMask], b, h}, {f.at_.in[kBias], b, h}} {
      A* p = f.args_.template worker_as<A>(worker);
      const auto take = [&](int64_t n) {
        A* at = p;
        p += n;
        return at;
      };
      q_copy_ = take(f.space_.q);
      kt_ = take(f.space_.kt);
      v_ = take(f.space_.v);
      scores_ = take(f.space_.scores);
      out_ = take(f.space_.out);
      m_ = take(f.space_.stats);
      l_ = m_ + f.space_.queries;
      factor_ = l_ + f.space_.queries;
      staging_ = take(f.space_.staging);
    }

    void run(int64_t i0, int64_t n) {
      const AttentionLayout& at = f_.at_;
      const T* q = at.in[0].template as<T>();
      const T *k = at.k_of(q, at.in[1].template as<const T>()),
              *v = at.v_of(q, at.in[1].template as<const T>(), at.in[2].template as<const T>());
      out_rows_ = f_.args_.out[0].template as<T>() + (s_.q_row + i0) * at.H * D_ + h_ * D_;
      i0_ = i0;
      n_ = n;
      const int64_t padded = round_up(n, R);
      const A scale = static_cast<A>(f_.args_.f("scale") * 1.44269504088896340736);
      q_ = q + (s_.q_row + i0) * at.q_stride + h_ * D_;
      fill(m_, padded, -std::numeric_limits<A>::infinity());
      fill(l_, padded, A(0));
      k += s_.k_row * at.k_stride + h_ * D_;
      v += s_.k_row * at.k_stride + h_ * D_;

      const int64_t first = rules_.pattern.begin(i0), end = rules_.pattern.end(i0, n);
      started_ = false;
      direct_ = std::is_same_v<T, A> && width_ == D_ && end - first <= f_.space_.columns && first < end;
      for (int64_t key = first; key < end; key += f_.space_.columns) {
        const int64_t keys = least(f_.space_.columns, end - key);
        pack_transposed(k + key * at.k_stride, at.k_stride, keys, D_, kt_, scale, staging_);
        pack_panels(v + key * at.k_stride, at.k_stride, keys, D_, v_);
        for (int64_t i = 0; i < padded; i += kQueryBlock) block(i, least(kQueryBlock, padded - i), key, keys);
        started_ = true;
      }
      finish();
    }

   private:
    // Keys of a group of rows inside the block: [begin, end), begin a whole panel.
    struct Columns {
      int64_t begin, end;
      bool empty() const { return begin >= end; }
    };
    Columns columns(int64_t i, int64_t key, int64_t keys) const {
      if (i >= n_) return {0, 0};
      const int64_t rows = least(R, n_ - i);
      const int64_t begin = most(rules_.pattern.begin(i0_ + i) - key, 0),
                    end = least(rules_.pattern.end(i0_ + i, rows) - key, keys);
      return {begin / P * P, end};
    }

    // A group of queries as the products take them: in place where their type allows it.
    const A* queries(int64_t i, A* copy, int64_t& ld) const {
      if constexpr (std::is_same_v<T, A>)
        if (i + R <= n_) {
          ld = f_.at_.q_stride;
          return q_ + i * ld;
        }
      const int64_t n = most(least(R, n_ - i), 0);
      load_rows(q_ + i * f_.at_.q_stride, f_.at_.q_stride, n, D_, copy, width_, A(1));
      fill(copy + n * width_, (R - n) * width_, A(0));
      ld = width_;
      return copy;
    }

    // `rows` queries from i (of this task) against the packed keys [key, key + keys).
    void block(int64_t i, int64_t rows, int64_t key, int64_t keys) {
      const int64_t groups = rows / R, lds = f_.space_.ld;
      Columns see[kQueryBlock / R];
      int64_t begin = keys, end = 0;
      for (int64_t g = 0; g < groups; ++g) {
        see[g] = columns(i + g * R, key, keys);
        if (see[g].empty()) continue;
        begin = least(begin, see[g].begin);
        end = most(end, see[g].end);
      }
      const A* q[kQueryBlock / R];
      int64_t ldq[kQueryBlock / R];
      for (int64_t g = 0; g < groups; ++g) q[g] = queries(i + g * R, q_copy_ + g * R * width_, ldq[g]);
      for (int64_t c = begin; c < end; c += P)
        for (int64_t g = 0; g < groups; ++g)
          if (see[g].begin <= c && c < see[g].end)
            tile_product<Start::zero, false>(q[g], ldq[g], kt_ + c * D_, P, scores_ + g * R * lds + c, lds,
                                             D_, static_cast<const A*>(nullptr));
      for (int64_t g = 0; g < groups; ++g)
        if (!see[g].empty()) soften(i + g * R, see[g], key, scores_ + g * R * lds);
        else fill(factor_ + i + g * R, R, A(0));
      for (int64_t c = 0; c < width_; c += P)
        for (int64_t g = 0; g < groups; ++g) {
          A* out = out_ + (i + g * R) * width_ + c;
          const A *p = scores_ + g * R * lds + see[g].begin, *v = v_ + c * keys + see[g].begin * P;
          const int64_t n = see[g].end - see[g].begin;
          if constexpr (std::is_same_v<T, A>)
            if (direct_ && i + (g + 1) * R <= n_) {
              tile_product<Start::zero_scaled, false>(p, lds, v, P,
                                                      out_rows_ + (i + g * R) * f_.at_.H * D_ + c,
                                                      f_.at_.H * D_, n, factor_ + i + g * R);
              continue;
            }
          if (!started_) tile_product<Start::zero, false>(p, lds, v, P, out, width_, n, factor_);
          else if (n > 0)
            tile_product<Start::scaled, false>(p, lds, v, P, out, width_, n, factor_ + i + g * R);
        }
    }

    // Scores to weights for a group of rows. Rows beyond the last query hold zeros and are not looked at
    // again.
    void soften(int64_t i, Columns see, int64_t key, A* s) {
      const int64_t lds = f_.space_.ld, rows = least(R, n_ - i), n = see.end - see.begin,
                    padded = round_up(n, P);
      s += see.begin;
      key += see.begin;
      if (!rules_.plain(i0_ + i, rows, key, n, padded))
        for (int64_t r = 0; r < rows; ++r) rules_.apply(i0_ + i + r, key, n, padded, s + r * lds);
      for (int r = 0; r < R; r += kSoftmaxRows)
        softmax_rows(s + r * lds, lds, padded, m_ + i + r, l_ + i + r, factor_ + i + r, !started_);
      if (direct_)
        for (int r = 0; r < R; ++r) factor_[i + r] = l_[i + r] == 0 ? A(0) : 1 / l_[i + r];
      for (int64_t r = 0; r < rows; ++r) {
        if (f_.dropout_) f_.dropout_.apply(f_.at_.lse_row(b_, h_, s_) + i0_ + i + r, key, n, s + r * lds);
        if (f_.weights_) write_weights(i + r, s + r * lds, key, n);
      }
    }

    // With weights asked for there is one block of keys, so l is final.
    void write_weights(int64_t i, const A* row, int64_t key, int64_t n) {
      T* w = f_.weights_ + ((b_ * f_.at_.H + h_) * s_.T + i0_ + i) * s_.S;
      const A inverse = l_[i] == 0 ? A(0) : 1 / l_[i];
      for (int64_t j = 0; j < key; ++j) w[j] = from_float<T>(A(0));
      for (int64_t j = 0; j < n; ++j) w[key + j] = from_float<T>(row[j] * inverse);
      for (int64_t j = key + n; j < s_.S; ++j) w[j] = from_float<T>(A(0));
    }

    void finish() {
      const AttentionLayout& at = f_.at_;
      A* lse = f_.args_.out[1].template as<A>() + at.lse_row(b_, h_, s_) + i0_;
      for (int64_t i = direct_ ? n_ / R * R : 0; i < n_; ++i) {
        if (l_[i] == 0) fill(out_ + i * width_, D_, A(0));  // it saw nothing
        store_rows(out_ + i * width_, width_, 1, D_, out_rows_ + i * at.H * D_, at.H * D_,
                   l_[i] == 0 ? A(0) : 1 / l_[i]);
      }
      if (f_.weights_)
        for (int64_t i = 0; i < n_; ++i)
          if (l_[i] == 0)
            fill(f_.weights_ + ((b_ * at.H + h_) * s_.T + i0_ + i) * s_.S, s_.S, from_float<T>(A(0)));
      constexpr int W = Lane<A>::n;
      for (int64_t i = 0; i < n_; i += W) {  // m_ and l_ have room for whole vectors
        const auto m = load(m_ + i), l = log(load(l_ + i)) * static_cast<A>(1.44269504088896340736);
        const int n = static_cast<int>(least(n_ - i, W));
        store_part(lse + i, m, n);
        store_part(lse + at.rows() + i, l, n);
      }
    }

    const Forward& f_;
    const int64_t b_, h_;
    const Sequence s_;
    const int64_t D_, width_;
    const ScoreRules<T, A> rules_;
    const T* q_;
    A *q_copy_, *kt_, *v_, *scores_, *out_, *m_, *l_, *factor_, *staging_;
    int64_t i0_ = 0, n_ = 0;
    T* out_rows_ = nullptr;
    bool direct_ = false;  // one block of keys: the products go to the output
    bool started_ = false;  // a block of keys was added to out_
  };

  const KernelArgs& args_;
  const AttentionLayout& at_;
  const WeightDropout dropout_;
  T* const weights_;
  const ForwardSpace space_;
  const int64_t chunks_, width_;
};

}  // namespace

static Workspace workspace(const KernelArgs& args) {
  const View& q = args.in[kQ];
  const bool ragged = args.has(kOffsets), weights = args.i("weights") != 0;
  const int64_t H = q.size[q.rank - 2], D = q.size[q.rank - 1],
                B = ragged ? args.in[kOffsets].numel - 1 : q.size[0], T = args.out[0].size[ragged ? 0 : 1];
  const int64_t S = args.has(kK) && !ragged ? args.in[kK].size[1] : T;
  const auto bytes = [&](int64_t elements) {
    return static_cast<size_t>(elements) * (q.dtype == DType::float64 ? 8 : 4);
  };
  if (decodes(T, ragged, weights, args.f("dropout"))) {
    const DecodeSpace space(B, T, S, H, D);
    return {.shared = bytes(space.parts + space.stats), .per_worker = bytes(space.scores + space.q)};
  }
  return {.per_worker = bytes(ForwardSpace(B * H, T, S, D, ragged, weights).total())};
}

PLM_KERNEL(attention, workspace) {
  const AttentionLayout at(args);
  for_float("attention", args.in[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (decodes(at.T, at.ragged, args.i("weights") != 0, args.f("dropout"))) Decode<T>(args, at).run();
    else Forward<T>(args, at).run();
  });
}

}  // namespace plmcore::PLM_ISA
