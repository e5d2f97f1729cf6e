// Element types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plmcore {

// The numbers are part of the program file format.
enum class DType : uint8_t { float64, float32, bfloat16, float16, int64, int32, int8, uint8, boolean };
constexpr int kDTypes = 9;

constexpr size_t size_of(DType t) {
  constexpr uint8_t bytes[kDTypes] = {8, 4, 2, 2, 8, 4, 1, 1, 1};
  return bytes[static_cast<int>(t)];
}
constexpr bool is_float(DType t) { return t <= DType::float16; }
constexpr bool is_index(DType t) { return t == DType::int64 || t == DType::int32; }

const char* name_of(DType t);                 // "float32", "bool", ...
DType dtype_from_name(std::string_view name);  // throws DTypeError that lists the names

inline void append(std::string& text, DType t) { text += name_of(t); }

}  // namespace plmcore
