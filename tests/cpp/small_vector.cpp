#include "plmcore/small_vector.h"

#include <memory>
#include <string>

#include "test.h"

using plmcore::SmallVector;

namespace {
struct Counting {  // every constructed object must be destroyed once
  static inline int alive = 0;
  std::string value;
  explicit Counting(std::string v = "") : value(std::move(v)) { ++alive; }
  Counting(const Counting& o) : value(o.value) { ++alive; }
  Counting(Counting&& o) noexcept : value(std::move(o.value)) { ++alive; }
  Counting& operator=(const Counting&) = default;
  ~Counting() { --alive; }
};
using Vector = SmallVector<Counting, 3>;
Vector make(int n) {
  Vector v;
  for (int i = 0; i < n; ++i) v.emplace_back("element number " + std::to_string(i));
  return v;
}
bool holds(const Vector& v, int n) {
  if (v.size() != static_cast<size_t>(n)) return false;
  for (int i = 0; i < n; ++i)
    if (v[static_cast<size_t>(i)].value != "element number " + std::to_string(i)) return false;
  return true;
}
}  // namespace

TEST(small_vector_copies_and_moves) {
  for (int n : {0, 1, 3, 4, 17})
    for (int m : {0, 2, 3, 4, 9}) {
      Vector a = make(n), b = make(m);
      Vector copy(a);
      CHECK(holds(copy, n) && holds(a, n));
      b = a;
      CHECK(holds(b, n));
      Vector moved(std::move(copy));
      CHECK(holds(moved, n) && copy.empty());  // NOLINT: a moved-from vector is empty
      a = make(m);
      CHECK(holds(a, m));
      a = std::move(moved);
      CHECK(holds(a, n) && moved.empty());  // NOLINT
      moved = make(m);
      CHECK(holds(moved, m));
      const Vector& self = a;
      a = self;
      CHECK(holds(a, n));
    }
  CHECK_EQ(Counting::alive, 0);
}

TEST(small_vector_resize) {
  Vector v = make(5);
  v.resize(2);
  CHECK(holds(v, 2));
  v.resize(8);
  CHECK_EQ(v.size(), 8u);
  CHECK_EQ(v.back().value, std::string());
  v.clear();
  CHECK(v.empty());
}

TEST(small_vector_aligns_large_elements) {
  struct alignas(64) Wide {
    float x[16];
  };
  SmallVector<Wide, 1> v;
  for (int i = 0; i < 9; ++i) v.emplace_back();
  for (const Wide& w : v) CHECK(reinterpret_cast<uintptr_t>(&w) % 64 == 0);
}
