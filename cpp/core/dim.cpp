// Expressions are polynomials with integer coefficients, kept as sorted terms and interned by their text.
#include "plmcore/dim.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/fork.h"
#include "core/recorder.h"

namespace plmcore {

using Monomial = std::vector<int32_t>;  // sorted symbol numbers, repeated for powers; empty: the constant
using Terms = std::map<Monomial, int64_t>;  // no zero coefficients

struct Expr {
  static Dim intern(const Terms& terms);
  static const Terms& terms_of(Dim d);
  static Terms get(Dim d) {
    if (!d.known()) return terms_of(d);
    Terms t;
    if (d.rep() != 0) t[{}] = d.rep();
    return t;
  }
  static int64_t handle(size_t index) { return ~static_cast<int64_t>(index); }
  static Dim make(int64_t rep) { return Dim(Dim::Rep{rep}); }
};

namespace {
// Interned for the life of the process: a Dim is a bare handle and may be held anywhere.
struct Table {
  std::mutex mutex;
  std::vector<std::string> symbols;
  std::map<std::string, int32_t, std::less<>> by_name;
  std::vector<Terms*> exprs;
  std::map<Terms, int64_t> by_terms;
  int fresh = 0;
};
Table& table() {
  static Table* t = [] {
    auto* fresh = new Table;
    hold_over_fork(fresh->mutex);
    return fresh;
  }();
  return *t;
}

constexpr int64_t kMost = int64_t{1} << 62;  // of a size or a coefficient, with either sign
int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  check(!__builtin_mul_overflow(a, b, &r) && -kMost <= r && r <= kMost, "sizes are too large: ", a, " * ", b,
        " elements");
  return r;
}
int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  check(!__builtin_add_overflow(a, b, &r) && -kMost <= r && r <= kMost, "sizes are too large: ", a, " + ", b);
  return r;
}

void add_term(Terms& t, const Monomial& m, int64_t c) {
  auto [it, fresh] = t.try_emplace(m, 0);
  it->second = checked_add(it->second, c);
  if (it->second == 0) t.erase(it);
}
Terms multiply(const Terms& a, const Terms& b) {
  Terms r;
  for (auto& [ma, ca] : a)
    for (auto& [mb, cb] : b) {
      Monomial m = ma;
      m.insert(m.end(), mb.begin(), mb.end());
      std::sort(m.begin(), m.end());
      add_term(r, m, checked_mul(ca, cb));
    }
  return r;
}
// m / by, or nothing where `by` does not divide it.
std::optional<Monomial> quotient(const Monomial& m, const Monomial& by) {
  if (!std::includes(m.begin(), m.end(), by.begin(), by.end())) return {};
  Monomial r;
  std::set_difference(m.begin(), m.end(), by.begin(), by.end(), std::back_inserter(r));
  return r;
}
const std::pair<const Monomial, int64_t>& leading(const Terms& t) {  // highest degree first, then by symbol
  return *std::max_element(t.begin(), t.end(), [](auto& a, auto& b) {
    return a.first.size() != b.first.size() ? a.first.size() < b.first.size() : a.first > b.first;
  });
}
}  // namespace

Dim Expr::intern(const Terms& terms) {
  if (terms.empty()) return Dim(0);
  if (terms.size() == 1 && terms.begin()->first.empty()) return Dim(terms.begin()->second);
  Table& t = table();
  std::lock_guard lock(t.mutex);
  auto [it, fresh] = t.by_terms.try_emplace(terms, handle(t.exprs.size()));
  if (fresh) t.exprs.push_back(new Terms(terms));
  return make(it->second);
}
const Terms& Expr::terms_of(Dim d) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  return *t.exprs[static_cast<size_t>(~d.rep())];
}

Dim Dim::symbol(std::string_view name) {
  check<ValueError>(!name.empty(), "a symbol needs a name");
  Table& t = table();
  int32_t id;
  {
    std::lock_guard lock(t.mutex);
    auto it = t.by_name.find(name);
    if (it == t.by_name.end()) {
      it = t.by_name.emplace(std::string(name), static_cast<int32_t>(t.symbols.size())).first;
      t.symbols.emplace_back(name);
    }
    id = it->second;
  }
  return Expr::intern({{{id}, 1}});
}
Dim Dim::fresh_symbol(std::string_view prefix) {
  if (!TraceRecorder::current())
    return symbol(prefix);  // dispatch puts its number in at once; the table must not grow by every call
  int n;
  {
    std::lock_guard lock(table().mutex);
    n = ++table().fresh;
  }
  return symbol(std::string(prefix) + "#" + std::to_string(n));
}

Dim Dim::parse(std::string_view text) {
  Terms sum;
  size_t i = 0;
  auto skip = [&] {
    while (i < text.size() && text[i] == ' ') ++i;
  };
  int sign = 1;
  skip();
  if (i < text.size() && text[i] == '-') sign = -1, ++i;  // "-B+T"
  while (true) {
    Terms product{{{}, sign}};
    while (true) {
      skip();
      const size_t start = i;
      while (i < text.size() && std::string_view("+-* ").find(text[i]) == std::string_view::npos) ++i;
      const std::string_view factor = text.substr(start, i - start);
      check<FormatError>(!factor.empty(), "cannot read the size '", text, "'");
      int64_t number = 0;
      const auto [end, error] = std::from_chars(factor.data(), factor.data() + factor.size(), number);
      if (error == std::errc() && end == factor.data() + factor.size())
        product = multiply(product, Terms{{{}, number}});
      else {
        check<FormatError>(!(factor[0] >= '0' && factor[0] <= '9'), "cannot read the size '", text, "'");
        product = multiply(product, Expr::get(symbol(factor)));
      }
      std::erase_if(product, [](auto& term) { return term.second == 0; });
      skip();
      if (i < text.size() && text[i] == '*') ++i;
      else break;
    }
    for (auto& [m, c] : product) add_term(sum, m, c);
    if (i == text.size()) break;
    check<FormatError>(text[i] == '+' || text[i] == '-', "cannot read the size '", text, "'");
    sign = text[i++] == '-' ? -1 : 1;
  }
  return Expr::intern(sum);
}

bool Dim::is_symbol() const {
  if (known()) return false;
  const Terms& t = Expr::terms_of(*this);
  return t.size() == 1 && t.begin()->first.size() == 1 && t.begin()->second == 1;
}

std::string Dim::str() const {
  if (known()) return std::to_string(rep_);
  const Terms& terms = Expr::terms_of(*this);
  std::lock_guard lock(table().mutex);
  std::string text;
  auto write = [&](const std::vector<std::string>& names, int64_t c) {
    if (!text.empty() || c < 0) text += c < 0 ? "-" : "+";
    const int64_t size = std::abs(c);
    if (names.empty() || size != 1) text += std::to_string(size);
    for (size_t k = 0; k < names.size(); ++k) text += (k || size != 1 ? "*" : "") + names[k];
  };
  std::map<std::vector<std::string>, const std::pair<const Monomial, int64_t>*>
      by_name;  // the order of creation is chance
  for (auto& term : terms) {
    std::vector<std::string> names;
    for (int32_t s : term.first) names.push_back(table().symbols[s]);
    std::sort(names.begin(), names.end());
    by_name.emplace(std::move(names), &term);
  }
  for (auto& [names, term] : by_name)
    if (!term->first.empty()) write(names, term->second);
  if (auto it = terms.find({}); it != terms.end()) write({}, it->second);
  return text;
}

void Dim::negative(int64_t size) { fail<ShapeError>("a size must not be negative, got ", size); }
void Dim::unknown() const {
  fail<TraceError>("the size ", str(),
                   " is not known while tracing; this code needs its number (a branch on it would fix the "
                   "program to one length)");
}
bool Dim::undecided(Dim a, Dim b) {
  fail<TraceError>("a traced program cannot branch on ", a.str(), " == ", b.str(),
                   "; make the sizes equal symbols, or pass a number");
}

Dim operator+(Dim a, Dim b) {
  if (a.known() && b.known()) return Dim(checked_add(a.rep_, b.rep_));
  Terms t = Expr::get(a);
  for (auto& [m, c] : Expr::get(b)) add_term(t, m, c);
  return Expr::intern(t);
}
Dim operator-(Dim a, Dim b) {
  if (a.known() && b.known()) return Dim(a.rep_ - b.rep_);
  Terms t = Expr::get(a);
  for (auto& [m, c] : Expr::get(b)) add_term(t, m, -c);
  return Expr::intern(t);
}
Dim operator*(Dim a, Dim b) {
  if (a.known() && b.known()) return Dim(checked_mul(a.rep_, b.rep_));
  return Expr::intern(multiply(Expr::get(a), Expr::get(b)));
}
Dim divide(Dim a, Dim b) {
  check(!b.is(0), "cannot divide the size ", a, " by 0");
  if (a.known() && b.known()) {
    check(a.rep_ % b.rep_ == 0, "the size ", a, " is not a multiple of ", b);
    return Dim(a.rep_ / b.rep_);
  }
  Terms rest = Expr::get(a), result;
  const Terms by = Expr::get(b);
  const auto [lead, lead_c] = leading(by);
  while (!rest.empty()) {
    const auto [m, c] = leading(rest);
    const std::optional<Monomial> q = quotient(m, lead);
    check<TraceError>(q && c % lead_c == 0, "cannot show that the size ", a, " is a multiple of ", b);
    const Terms term{{*q, c / lead_c}};
    add_term(result, *q, c / lead_c);
    for (auto& [mm, cc] : multiply(term, by)) add_term(rest, mm, -cc);
  }
  return Expr::intern(result);
}

bool require_equal(Dim a, Dim b) {
  if (same(a, b)) return true;
  if (a.known() && b.known()) return false;
  if (TraceRecorder* trace = TraceRecorder::current()) return trace->guard(a, b);
  return false;
}

int64_t Bindings::evaluate(Dim d) const {
  if (d.known()) return d.rep();
  int64_t sum = 0;
  for (auto& [m, c] : Expr::terms_of(d)) {
    int64_t product = c;
    for (int32_t s : m) {
      const auto it =
          std::find_if(symbols_.begin(), symbols_.end(), [&](auto& bound) { return bound.first == s; });
      check<TraceError>(it != symbols_.end(), "the size ", d,
                        " has a symbol that no input of the program sets");
      product = checked_mul(product, it->second);
    }
    sum = checked_add(sum, product);
  }
  check(sum >= 0, "the size ", d, " would be ", sum);
  return sum;
}
bool Bindings::bind(Dim pattern, int64_t value) {
  if (pattern.known()) return pattern.rep() == value;
  if (pattern.is_symbol()) {
    const int32_t s = Expr::terms_of(pattern).begin()->first[0];
    for (auto& [symbol, size] : symbols_)
      if (symbol == s) return size == value;
    symbols_.emplace_back(s, value);
    return true;
  }
  return evaluate(pattern) == value;
}

Dim Shape::numel() const {
  Dim n = 1;
  for (int i = 0; i < rank_; ++i) {
    if (dims_[i].is(0)) return 0;
  }
  for (int i = 0; i < rank_; ++i) n = n * dims_[i];
  return n;
}
std::string Shape::str() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i) text += ", ";
    text += dims_[i].str();
  }
  return text + "]";
}

}  // namespace plmcore
