// The gradient of attention. With P the weights, M the dropout factors, W = P M, dO the output's gradient:
//   dV = W^T dO,  dP = (dO V^T + dW) M,  dS = P (dP - delta),  delta = rowsum(dO O + dW W)
//   dQ = scale dS K,  dK = scale dS^T Q,  dbias = dS
// P is computed again from the saved log-sum, tile by tile: nothing of size [T, S] is kept.
//
// A task is one head and a group of key blocks (96 keys). q and dO are copied once per task; for each key
// block k and v are packed, then for 96 queries at a time five products run on tiles in the first- and
// second-level cache. dK and dV are complete at the end of a key block, dQ adds up over the blocks of a task
// and then, in order, over the groups. Traffic: q, dO once per task, k, v once per key block, all gradients
// written once.
#include "kernels/attention_dropout.h"
#include "kernels/attention_mask.h"
#include "kernels/attention_tiles.h"

namespace plmcore::PLM_ISA {
namespace {

template <class T>
class Backward {
 public:
  using A = typename Lane<T>::Scalar;
  static constexpr int P = kPanel<A>, R = kTileRows;

  Backward(const KernelArgs& args, const AttentionLayout& at)
      : args_(args),
        at_(at),
        dropout_(args, at),
        space_(at.longest_q, at.D),
        width_(round_up(at.D, P)),
        dbias_(args.i("bias_grad") ? args.out[args.n_out - 1] : View()),
        shared_b_(dbias_ && dbias_.size[0] == 1),
        shared_h_(dbias_ && dbias_.size[1] == 1),
        units_((shared_b_ ? 1 : at.B) * (shared_h_ ? 1 : at.H)),
        groups_(key_groups(units_, at.S)),
        parts_(args.shared_as<A>()),
        dbias_sum_(std::is_same_v<T, A> ? reinterpret_cast<A*>(dbias_.data)
                                        : parts_ + (groups_ > 1 ? groups_ * at.rows() * width_ : 0)) {}

  void run() {
    if (dbias_)
      for_chunks(dbias_.numel, kGrain, [&](int64_t b, int64_t e) { fill(dbias_sum_ + b, e - b, A(0)); });
    parallel_for(units_ * groups_, [&](int64_t task, int worker) {
      const int64_t unit = task % units_, group = task / units_, heads = shared_h_ ? 1 : at_.H;
      const int64_t b = unit / heads, h = unit % heads;
      for (int64_t bb = b; bb < (shared_b_ ? at_.B : b + 1); ++bb)
        for (int64_t hh = h; hh < (shared_h_ ? at_.H : h + 1); ++hh) Task(*this, bb, hh, worker).run(group);
    });
    if (groups_ > 1) add_parts();
    if constexpr (!std::is_same_v<T, A>)
      if (dbias_)
        for_chunks(dbias_.numel, kGrain, [&](int64_t b, int64_t e) {
          store_rows(dbias_sum_ + b, e - b, 1, e - b, dbias_.as<T>() + b, e - b, A(1));
        });
  }

 private:
  T* dq() const { return args_.out[0].template as<T>(); }
  T* dk() const { return at_.k_of(dq(), args_.out[1].template as<T>()); }
  T* dv() const {
    return at_.packed_qkv ? at_.v_of(dq(), dq(), dq())
                          : at_.v_of(dq(), args_.out[1].template as<T>(),
                                     at_.packed_kv ? nullptr : args_.out[2].template as<T>());
  }
  A scale() const { return static_cast<A>(args_.f("scale")); }

  // The gradient of q as the sum of what the groups of keys left.
  void add_parts() {
    const int64_t D = at_.D, step = at_.rows() * width_;
    for (int64_t b = 0; b < at_.B; ++b) {
      const Sequence s = at_.sequence(b);
      for_rows(at_.H * s.T, D * groups_, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t h = r / s.T, i = r % s.T;
          A* sum = parts_ + (at_.lse_row(b, h, s) + i) * width_;
          for (int64_t g = 1; g < groups_; ++g)
            for (int64_t d = 0; d < D; ++d) sum[d] += sum[g * step + d];
          store_rows(sum, width_, 1, D, dq() + (s.q_row + i) * at_.q_stride + h * D, at_.q_stride, scale());
        }
      });
    }
  }

  // One head, one group of key blocks.
  class Task {
   public:
    Task(const Backward& f, int64_t b, int64_t h, int worker)
        : f_(f),
          at_(f.at_),
          b_(b),
          h_(h),
          s_(f.at_.sequence(b)),
          D_(f.at_.D),
          width_(f.width_),
          rules_{Pattern(f.args_, f.at_, b, s_), {f.at_.in[kMask], b, h}, {f.at_.in[kBias], b, h}},
          dweights_(f.at_.in[kDweights], b, h) {
      A* p = f.args_.template worker_as<A>(worker);
      const auto take = [&](int64_t n) {
        A* at = p;
        p += n;
        return at;
      };
      q_ = take(f.space_.q);
      dout_ = take(f.space_.q);
      dq_ = take(f.space_.q);
      kt_ = take(f.space_.keys);
      vt_ = take(f.space_.keys);
      k_ = take(f.space_.keys);
      dk_ = take(f.space_.keys);
      dv_ = take(f.space_.keys);
      p_ = take(f.space_.scores);
      ds_ = take(f.space_.scores);
      m_ = take(f.space_.stats);
      l_ = m_ + f.space_.rows;
      delta_ = l_ + f.space_.rows;
      staging_ = take(f.space_.staging);
    }

    void run(int64_t group) {
      load_queries();
      const T* q = at_.in[0].template as<const T>();
      const T *k = at_.k_of(q, at_.in[1].template as<const T>()),
              *v = at_.v_of(q, at_.in[1].template as<const T>(), at_.in[2].template as<const T>());
      const int64_t size = grad_block_keys(s_.S), blocks = ceil_div(s_.S, size),
                    first = s_.k_row * at_.k_stride + h_ * D_;
      const A log2e = static_cast<A>(1.44269504088896340736);
      for (int64_t block = blocks * group / f_.groups_; block < blocks * (group + 1) / f_.groups_; ++block) {
        key_ = block * size;
        keys_ = least(size, s_.S - key_);
        fill(dk_, round_up(keys_, R) * width_, A(0));
        fill(dv_, round_up(keys_, R) * width_, A(0));
        const int64_t stride = at_.k_stride, row = first + key_ * stride;
        if (s_.T > 0 && rules_.pattern.begin(0) < key_ + keys_ && key_ < rules_.pattern.end(0, s_.T)) {
          pack_transposed(k + row, stride, keys_, D_, kt_, f_.scale() * log2e, staging_);
          pack_transposed(v + row, stride, keys_, D_, vt_, A(1), staging_);
          pack_panels(k + row, stride, keys_, D_, k_);
          for (int64_t i = 0; i < s_.T; i += kGradQueries)
            tile(i, ceil_div(least(kGradQueries, s_.T - i), R));
        }
        store_rows(dk_, width_, keys_, D_, f_.dk() + row, stride, f_.scale());
        store_rows(dv_, width_, keys_, D_, f_.dv() + row, stride, A(1));
      }
      if (f_.groups_ == 1)
        store_rows(dq_, width_, s_.T, D_, f_.dq() + s_.q_row * at_.q_stride + h_ * D_, at_.q_stride,
                   f_.scale());
      else
        store_rows(dq_, width_, s_.T, width_,
                   f_.parts_ + (group * at_.rows() + at_.lse_row(b_, h_, s_)) * width_, width_, A(1));
    }

   private:
    // q, dO, the log-sums and delta of all queries; rows up to a whole group are 0.
    void load_queries() {
      const int64_t padded = round_up(s_.T, R), stride = at_.H * D_, row = s_.q_row * stride + h_ * D_,
                    lse_row = at_.lse_row(b_, h_, s_);
      const T *out = at_.in[kOut].template as<const T>() + row, *dout = at_.in[kDout].template as<const T>();
      load_rows(at_.in[0].template as<const T>() + s_.q_row * at_.q_stride + h_ * D_, at_.q_stride, s_.T, D_,
                q_, width_, A(1));
      if (dout) load_rows(dout + row, stride, s_.T, D_, dout_, width_, A(1));
      else fill(dout_, s_.T * width_, A(0));
      fill(q_ + s_.T * width_, (padded - s_.T) * width_, A(0));
      fill(dout_ + s_.T * width_, (padded - s_.T) * width_, A(0));
      fill(dq_, padded * width_, A(0));
      const A* lse = at_.in[kLse].template as<const A>() + lse_row;
      const T* weights = at_.in[kWeights].template as<const T>();
      for (int64_t i = 0; i < padded; ++i) {
        // A query without keys: its weights become exp2(-inf).
        const bool none = i >= s_.T || lse[i] == -std::numeric_limits<A>::infinity();
        m_[i] = none ? std::numeric_limits<A>::infinity() : lse[i];
        l_[i] = none ? A(0) : lse[at_.rows() + i];
        delta_[i] = i < s_.T ? dot(out + i * stride, dout_ + i * width_, D_) : A(0);
        if (dweights_ && i < s_.T)
          for (int64_t j = 0; j < s_.S; ++j)
            delta_[i] += static_cast<A>(to_float(dweights_.row(i)[j])) *
                         static_cast<A>(to_float(weights[(lse_row + i) * s_.S + j]));
      }
    }
    static A dot(const T* x, const A* y, int64_t n) {
      constexpr int W = Lane<A>::n;
      typename Lane<A>::Vec sum{};
      int64_t d = 0;
      for (; d + W <= n; d += W) sum += load(x + d) * load(y + d);
      A total = reduce_add(sum);
      for (; d < n; ++d) total += static_cast<A>(to_float(x[d])) * y[d];
      return total;
    }

    // Columns of the key block that a group of queries sees: [begin, end), begin a whole panel.
    struct Columns {
      int64_t begin, end;
      bool empty() const { return begin >= end; }
    };

    // `groups` groups of queries from i against the key block.
    void tile(int64_t i, int64_t groups) {
      const int64_t ld = f_.space_.ld;
      Columns see[kGradQueries / R];
      int64_t begin = keys_, end = 0;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t first = i + g * R, rows = least(R, s_.T - first);
        see[g] = {most(rules_.pattern.begin(first) - key_, 0) / P * P,
                  least(rules_.pattern.end(first, rows) - key_, keys_)};
        if (see[g].empty()) continue;
        begin = least(begin, see[g].begin);
        end = most(end, see[g].end);
      }
      if (begin >= end) return;
      const A* none = nullptr;
      for (int64_t c = begin; c < end; c += P)
        for (int64_t g = 0; g < groups; ++g)
          if (see[g].begin <= c && c < see[g].end) {
            tile_product<Start::zero, false>(q_ + (i + g * R) * width_, width_, kt_ + c * D_, P,
                                             p_ + g * R * ld + c, ld, D_, none);
            tile_product<Start::zero, false>(dout_ + (i + g * R) * width_, width_, vt_ + c * D_, P,
                                             ds_ + g * R * ld + c, ld, D_, none);
          }
      for (int64_t g = 0; g < groups; ++g)
        differentiate(i + g * R, see[g], p_ + g * R * ld, ds_ + g * R * ld);

      for (int64_t key = begin / R * R; key < end; key += R) {
        int64_t from = 0, to = groups;  // the groups that see one of these keys
        while (from < to && see[from].end <= key) ++from;
        while (to > from && see[to - 1].begin >= key + R) --to;
        for (int64_t c = 0; c < width_; c += P) {
          const int64_t at = key * width_ + c, q = (i + from * R) * width_ + c, n = (to - from) * R;
          tile_product<Start::add, true>(p_ + from * R * ld + key, ld, dout_ + q, width_, dv_ + at, width_, n,
                                         none);
          tile_product<Start::add, true>(ds_ + from * R * ld + key, ld, q_ + q, width_, dk_ + at, width_, n,
                                         none);
        }
      }
      for (int64_t c = 0; c < width_; c += P)
        for (int64_t g = 0; g < groups; ++g)
          if (!see[g].empty())
            tile_product<Start::add, false>(
                ds_ + g * R * ld + see[g].begin, ld, k_ + c * keys_ + see[g].begin * P, P,
                dq_ + (i + g * R) * width_ + c, width_, see[g].end - see[g].begin, none);
    }

    // Scores to W and dO V^T to dS, in place, for a group of queries; 0 in the columns it does not see.
    void differentiate(int64_t i, Columns see, A* p, A* ds) {
      constexpr int W = Lane<A>::n;
      const int64_t ld = f_.space_.ld, rows = least(R, s_.T - i), width = round_up(keys_, R);
      if (see.empty()) see = {0, 0};
      const int64_t n = see.end - see.begin, padded = round_up(n, P), key = key_ + see.begin;
      const bool plain = n > 0 && rules_.plain(i, rows, key, n, padded);
      for (int64_t r = 0; r < R; ++r, p += ld, ds += ld) {
        fill(p, see.begin, A(0));
        fill(ds, see.begin, A(0));
        fill(p + see.begin + padded, width - see.begin - padded, A(0));
        fill(ds + see.begin + padded, width - see.begin - padded, A(0));
        if (r < rows && !plain && n > 0) rules_.apply(i + r, key, n, padded, p + see.begin);
        if (r < rows && dweights_)
          for (int64_t j = 0; j < n; ++j)
            ds[see.begin + j] += static_cast<A>(to_float(dweights_.row(i + r)[key + j]));
        const A m = m_[i + r], l = l_[i + r], delta = delta_[i + r];
        if (r < rows && f_.dropout_) dropped(i + r, key, n, padded, p + see.begin, ds + see.begin);
        else
          for (int64_t j = see.begin; j < see.begin + padded; j += W) {
            const auto w = exp2_nonpositive(load(p + j) - m - l);
            store(p + j, w);
            store(ds + j, w * (load(ds + j) - delta));
          }
        if (r < rows && f_.dbias_) add_bias(i + r, key, n, ds + see.begin);
      }
    }
    void dropped(int64_t i, int64_t key, int64_t n, int64_t padded, A* p, A* ds) {
      A factor[kGradKeys];
      fill(factor, padded, A(1));
      f_.dropout_.apply(at_.lse_row(b_, h_, s_) + i, key, n, factor);
      for (int64_t j = 0; j < padded; ++j) p[j] = p[j] - m_[i] - l_[i];
      for (int64_t j = 0; j < padded; j += Lane<A>::n) store(p + j, exp2_nonpositive(load(p + j)));
      for (int64_t j = 0; j < padded; ++j) {
        ds[j] = p[j] * (ds[j] * factor[j] - delta_[i]);
        p[j] *= factor[j];
      }
    }
    void add_bias(int64_t i, int64_t key, int64_t n, const A* ds) {
      const View& v = f_.dbias_;
      A* to =
          f_.dbias_sum_ +
          (((v.size[0] == 1 ? 0 : b_) * v.size[1] + (v.size[1] == 1 ? 0 : h_)) * v.size[2] + i) * v.size[3] +
          key;
      for (int64_t j = 0; j < n; ++j) to[j] += ds[j];
    }

    const Backward& f_;
    const AttentionLayout& at_;
    const int64_t b_, h_;
    const Sequence s_;
    const int64_t D_, width_;
    const ScoreRules<T, A> rules_;
    const Plane<const T> dweights_;
    A *q_, *dout_, *dq_, *kt_, *vt_, *k_, *dk_, *dv_, *p_, *ds_, *m_, *l_, *delta_, *staging_;
    int64_t key_ = 0, keys_ = 0;
  };

  const KernelArgs& args_;
  const AttentionLayout& at_;
  const WeightDropout dropout_;
  const BackwardSpace space_;
  const int64_t width_;
  const View dbias_;
  const bool shared_b_, shared_h_;
  const int64_t units_, groups_;
  A *const parts_, *const dbias_sum_;
};

}  // namespace

static Workspace workspace(const KernelArgs& args) {
  const View &q = args.in[kQ], &bias = args.in[kBias];
  const bool ragged = args.has(kOffsets), bias_grad = args.i("bias_grad") != 0;
  const int64_t H = q.size[q.rank - 2], D = q.size[q.rank - 1],
                B = ragged ? args.in[kOffsets].numel - 1 : q.size[0], T = q.size[ragged ? 0 : 1];
  const int64_t S = args.has(kK) && !ragged ? args.in[kK].size[1] : T;
  const int64_t units = (bias_grad && bias.size[0] == 1 ? 1 : B) * (bias_grad && bias.size[1] == 1 ? 1 : H),
                groups = key_groups(units, S);
  const BackwardSpace space(T, D);
  int64_t shared = groups > 1 ? groups * (ragged ? H * T : B * H * T) * space.width : 0;
  if (bias_grad && size_of(q.dtype) < 4) shared += bias.numel;  // its sum, before it is rounded
  const size_t element = q.dtype == DType::float64 ? 8 : 4;
  return {.shared = static_cast<size_t>(shared) * element,
          .per_worker = static_cast<size_t>(space.total()) * element};
}

PLM_KERNEL(attention_grad, workspace) {
  const AttentionLayout at(args);
  for_float("attention_grad", args.in[0].dtype,
            [&](auto type) { Backward<typename decltype(type)::type>(args, at).run(); });
}

}  // namespace plmcore::PLM_ISA
