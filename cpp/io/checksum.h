// CRC-32 as of zlib and PNG (polynomial 0xEDB88320).
#pragma once

#include <cstddef>
#include <cstdint>

namespace plmcore {

// Of bytes that follow others whose checksum is `before`.
uint32_t crc32(const void* data, size_t bytes, uint32_t before = 0);

}  // namespace plmcore
