// What a kernel finds wrong in its data: an id outside of its table. Shape rules cannot see it.
// A kernel of the CPU throws it. One of a device that runs behind the caller notes the first in the device's
// error word and leaves the access out; the next wait throws it, with the CPU's sentence.
#pragma once

#include <cstdint>

#include "core/kernel_args.h"
#include "core/op_ids.h"

namespace plmcore {

enum class DataError : int32_t {
  none,
  index,      // `value` is outside of an axis of `limit`                                  -> IndexError
  label,      // `value` is none of `limit` classes                                        -> IndexError
  row,        // `value` is outside of `limit` rows                                        -> IndexError
  row_order,  // the row `value` comes after `limit`, which is not below it                -> ValueError
  offset,     // `value` does not rise from 0 to `limit`                                   -> ValueError
  position,   // `value` is outside of `limit` keys                                        -> ValueError
  length,     // `value` is outside of 0 ... `limit` steps                                -> ValueError
  cover,      // a mask or bias does not cover the longest sequence, of `value` rows       -> ShapeError
};
// Which of them an op can meet, for OpDef.
template <class... E>
constexpr uint32_t can_meet(E... errors) {
  return ((uint32_t{1} << static_cast<int>(errors)) | ...);
}

// Plain data: it crosses the plug-in boundary, and device memory.
struct Fault {
  DataError error = DataError::none;
  int32_t op = 0;                        // its place in ops.def
  int32_t input = 0;                     // which one of attention's it was
  int32_t rank = 0;                      // of that input
  int64_t size[Shape::kMaxRank] = {};
  int64_t value = 0, limit = 0;
  int64_t at = 0;                        // the number of the element in that input
};

// With the op and the sizes of the tensor that it is in; the rest is to be filled in.
Fault fault_in(ops::Id op, const View& where, int input = 0);
// Throws the exception of a fault; it is also a FaultCarrier.
[[noreturn]] void raise(const Fault& fault);

struct FaultCarrier {
  explicit FaultCarrier(const Fault& f) : fault(f) {}
  virtual ~FaultCarrier();
  Fault fault;
};

}  // namespace plmcore
