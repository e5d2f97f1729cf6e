#include "io/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace plmcore {

namespace {

constexpr int kBytes = 8;  // that a round takes: one table for the place of each
using Tables = std::array<std::array<uint32_t, 256>, kBytes>;

constexpr Tables made() {
  Tables t{};
  for (uint32_t n = 0; n < 256; ++n) {
    uint32_t c = n;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    t[0][n] = c;
  }
  for (uint32_t n = 0; n < 256; ++n)
    for (int k = 1; k < kBytes; ++k) t[k][n] = (t[k - 1][n] >> 8) ^ t[0][t[k - 1][n] & 0xFF];
  return t;
}
constexpr Tables kTables = made();
static_assert(std::endian::native == std::endian::little);

}  // namespace

uint32_t crc32(const void* data, size_t bytes, uint32_t before) {
  const auto* p = static_cast<const uint8_t*>(data);
  uint32_t c = ~before;
  for (; bytes >= kBytes; bytes -= kBytes, p += kBytes) {
    uint64_t eight;
    std::memcpy(&eight, p, kBytes);
    eight ^= c;
    c = 0;
    for (int k = 0; k < kBytes; ++k) c ^= kTables[kBytes - 1 - k][(eight >> (8 * k)) & 0xFF];
  }
  for (; bytes > 0; --bytes, ++p) c = (c >> 8) ^ kTables[0][(c ^ *p) & 0xFF];
  return ~c;
}

}  // namespace plmcore
