// Dim: a size, or an interned polynomial over named symbols (B, T, P+T). Shape: up to eight Dims.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plmcore/error.h"

namespace plmcore {

// Eight bytes: rep >= 0 is the size itself, rep < 0 the handle of an expression. Expressions are canonical,
// so equal expressions have equal handles.
class Dim {
 public:
  constexpr Dim() = default;
  constexpr Dim(int64_t size) : rep_(size) {
    if (size < 0) negative(size);
  }
  static Dim symbol(std::string_view name);          // the same name is the same symbol
  static Dim fresh_symbol(std::string_view prefix);  // a new one in each trace: N#1, N#2, ...
  static Dim parse(std::string_view text);           // "B", "P+T", "2*B*T+1", "768"

  constexpr bool known() const { return rep_ >= 0; }
  // The size; a TraceError that names the expression when there is none.
  int64_t value() const {
    if (rep_ < 0) [[unlikely]]
      unknown();
    return rep_;
  }
  bool is(int64_t n) const { return rep_ == n; }      // never branches on a symbol: false for a symbol
  bool is_symbol() const;                             // exactly one symbol, not an expression of several
  int64_t rep() const { return rep_; }
  std::string str() const;

  friend constexpr bool same(Dim a, Dim b) { return a.rep_ == b.rep_; }  // structurally equal
  // Branching comparison: throws a TraceError when it would decide over symbols.
  friend bool operator==(Dim a, Dim b) {
    if (same(a, b)) return true;
    if (a.known() && b.known()) return false;
    return undecided(a, b);
  }
  friend Dim operator+(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);
  friend Dim divide(Dim a, Dim b);  // exact; ShapeError where it leaves a remainder

 private:
  struct Rep {
    int64_t rep;
  };
  constexpr explicit Dim(Rep r) : rep_(r.rep) {}
  [[noreturn]] static void negative(int64_t size);
  [[noreturn]] void unknown() const;
  static bool undecided(Dim a, Dim b);
  friend struct Expr;

  int64_t rep_ = 0;
};
inline void append(std::string& text, Dim d) { text += d.str(); }

// Asserts a == b. Sizes are compared; over symbols the running trace gets a guard that holds when the program
// runs.
bool require_equal(Dim a, Dim b);

// Values of symbols while a program runs.
class Bindings {
 public:
  int64_t evaluate(Dim d) const;             // TraceError for an unbound symbol
  bool bind(Dim pattern,
            int64_t value);     // binds a lone unbound symbol; otherwise compares; false on mismatch
 private:
  std::vector<std::pair<int32_t, int64_t>> symbols_;
};

class Shape {
 public:
  enum : int { kMaxRank = 8 };
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) {
    for (Dim d : dims) push_back(d);
  }
  explicit Shape(std::span<const Dim> dims) {
    for (Dim d : dims) push_back(d);
  }

  int rank() const { return rank_; }
  Dim operator[](int i) const { return dims_[i]; }
  Dim& operator[](int i) { return dims_[i]; }
  Dim back() const { return dims_[rank_ - 1]; }
  const Dim* begin() const { return dims_; }
  const Dim* end() const { return dims_ + rank_; }
  void push_back(Dim d) {
    check(rank_ < kMaxRank, "a tensor has at most 8 axes");
    dims_[rank_++] = d;
  }
  bool known() const {
    for (Dim d : *this)
      if (!d.known()) return false;
    return true;
  }
  Dim numel() const;            // ShapeError when the product exceeds 2^62
  Shape drop_last() const { return Shape({dims_, static_cast<size_t>(rank_ - 1)}); }
  Shape with_last(Dim d) const {
    Shape s = *this;
    s.dims_[rank_ - 1] = d;
    return s;
  }
  std::string str() const;      // "[2, 5, 768]"

  // Structural equality; over symbols it is a check (a guard in a trace), not a branch.
  bool matches(const Shape& o) const {
    if (rank_ != o.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if (!require_equal(dims_[i], o.dims_[i])) return false;
    return true;
  }
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (!(a.dims_[i] == b.dims_[i])) return false;
    return true;
  }

 private:
  int rank_ = 0;
  Dim dims_[kMaxRank];
};
inline void append(std::string& text, const Shape& s) { text += s.str(); }

}  // namespace plmcore
