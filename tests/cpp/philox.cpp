#include "core/philox.h"

#include "test.h"

using namespace plmcore;

// Known answers of Random123 1.14 (kat_vectors), for counters whose upper half is zero.
TEST(philox_known_answers) {
  const Random4 r = philox(0, 0);
  CHECK_EQ(r.x[0], 0x6627e8d5u);
  CHECK_EQ(r.x[1], 0xe169c58du);
  CHECK_EQ(r.x[2], 0xbc57ac4cu);
  CHECK_EQ(r.x[3], 0x9b00dbd8u);
}

TEST(philox_streams_differ) {
  CHECK(philox(1, 0).x[0] != philox(2, 0).x[0]);
  CHECK(philox(1, 0).x[0] != philox(1, 1).x[0]);
  CHECK(philox(1, 0).x[0] != philox(1, uint64_t{1} << 32).x[0]);
  CHECK(philox(1, 0).x[0] != philox(1 + (uint64_t{1} << 32), 0).x[0]);
}

TEST(uniform01_stays_below_one) {
  CHECK(uniform01(0) == 0.f);
  CHECK(uniform01(0xffffffffu) < 1.f);
}
