#include "plmcore/dim.h"

#include "test.h"

using namespace plmcore;

TEST(dim_arithmetic_is_canonical) {
  const Dim B = Dim::symbol("B"), T = Dim::symbol("T");
  CHECK(same(B + T, T + B));
  CHECK(same((B + T) * (B + T), B * B + 2 * B * T + T * T));
  CHECK(same(B + T - T, B));
  CHECK(same(B - B, Dim(0)));
  CHECK((B * 0).is(0));
  CHECK(same(divide(B * T * 12, T * 3), B * 4));
  CHECK(same(divide(B * B - T * T, B + T), B - T));
  CHECK_THROWS(TraceError, "cannot show that the size", divide(B + 1, Dim(2)));
  CHECK_THROWS(ShapeError, "7 is not a multiple of 2", divide(Dim(7), Dim(2)));
  CHECK_THROWS(ShapeError, "by 0", divide(B, Dim(0)));
}

TEST(dim_text_round_trip) {
  const Dim B = Dim::symbol("B"), T = Dim::symbol("T"), P = Dim::symbol("P");
  for (Dim d :
       {Dim(0), Dim(768), B, P + T, 2 * B * T + 1, T - B, B - T - 7, B * B * T, Dim::fresh_symbol("N") + 3})
    CHECK(same(Dim::parse(d.str()), d));
  for (const char* text : {"", "+", "B*", "B++T", "2B", "B T", "*", "-", "99999999999999999999"})
    CHECK_THROWS(Error, "", Dim::parse(text));
}

TEST(dim_branches_over_symbols_are_errors) {
  const Dim B = Dim::symbol("B"), T = Dim::symbol("T");
  CHECK(B == B);
  CHECK(Dim(3) == Dim(3));
  CHECK(!(Dim(3) == Dim(4)));
  CHECK_THROWS(TraceError, "cannot branch on B == T", B == T);
  CHECK_THROWS(TraceError, "the size B is not known", B.value());
  CHECK(!B.is(1));
  CHECK(B.is_symbol() && !(B + 1).is_symbol() && !Dim(2).is_symbol());
}

TEST(dim_limits) {
  CHECK_THROWS(ShapeError, "must not be negative, got -1", Dim(-1));
  CHECK_THROWS(ShapeError, "too large", Dim(INT64_MAX) * Dim(2));
  CHECK_THROWS(ShapeError, "too large", Dim(INT64_MAX) + Dim(1));
  CHECK_THROWS(ShapeError, "too large", (Shape{Dim(int64_t{1} << 40), Dim(int64_t{1} << 40)}).numel());
  CHECK((Shape{Dim(int64_t{1} << 40), Dim(int64_t{1} << 40), Dim(0)}).numel().is(0));
}

TEST(bindings) {
  const Dim B = Dim::symbol("B"), T = Dim::symbol("T");
  Bindings b;
  CHECK(b.bind(B, 4));
  CHECK(b.bind(B, 4) && !b.bind(B, 5));
  CHECK_THROWS(TraceError, "has a symbol that no input", b.evaluate(B + T));
  CHECK(b.bind(T, 3));
  CHECK_EQ(b.evaluate(2 * B * T + 1), 25);
  CHECK(b.bind(B * T, 12) && !b.bind(B * T, 13));
  CHECK_THROWS(ShapeError, "would be -1", b.evaluate(T - B));
}

TEST(shape) {
  Shape s{2, 5, 768};
  CHECK_EQ(s.str(), std::string("[2, 5, 768]"));
  CHECK_EQ(s.numel().value(), 7680);
  CHECK(s.drop_last() == (Shape{2, 5}));
  CHECK(s.with_last(3) == (Shape{2, 5, 3}));
  CHECK(s.matches({2, 5, 768}) && !s.matches({2, 5}) && !s.matches({2, 5, 767}));
  CHECK(Shape{}.numel().is(1));
  for (int i = 0; i < 5; ++i) s.push_back(1);
  CHECK_THROWS(ShapeError, "at most 8 axes", (s.push_back(1), 0));
}
