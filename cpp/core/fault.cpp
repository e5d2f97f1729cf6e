#include "core/fault.h"

#include <algorithm>

#include "core/attention_inputs.h"
#include "plmcore/error.h"

namespace plmcore {

FaultCarrier::~FaultCarrier() = default;

namespace {

template <class E>
struct Faulty final : E, FaultCarrier {
  Faulty(const std::string& text, const Fault& f) : E(text), FaultCarrier(f) {}
};

template <class E, class... Parts>
[[noreturn]] void raise_as(const Fault& f, const Parts&... parts) {
  std::string text = std::string(ops::kNames[f.op]) + ": ";
  (append(text, parts), ...);
  throw Faulty<E>(text, f);
}

Shape position(const Fault& f) {
  Shape place;
  for (int axis = 0; axis < f.rank; ++axis) {
    int64_t inner = 1;
    for (int k = axis + 1; k < f.rank; ++k) inner *= f.size[k];
    place.push_back(f.at / inner % f.size[axis]);
  }
  return place;
}

const char* attention_input(int input) {
  switch (input) {
    case attention_inputs::kLengths: return "lengths";
    case attention_inputs::kPrefix: return "prefix";
    case attention_inputs::kStart: return "start";
    case attention_inputs::kMask: return "mask";
    default: return "bias";
  }
}

}  // namespace

Fault fault_in(ops::Id op, const View& where, int input) {
  Fault f;
  f.op = op;
  f.input = input;
  f.rank = where.rank;
  std::copy_n(where.size, where.rank, f.size);
  return f;
}

void raise(const Fault& f) {
  switch (f.error) {
    case DataError::label:
      raise_as<IndexError>(f, "label ", f.value, " at position ", position(f), " is out of range for ",
                           f.limit, " classes");
    case DataError::row:
      raise_as<IndexError>(f, "row ", f.value, " at position ", f.at, " is out of range for ", f.limit,
                           " rows");
    case DataError::row_order:
      raise_as<ValueError>(f, "rows must be sorted and unique, got ", f.limit, " before ", f.value);
    case DataError::offset:
      raise_as<ValueError>(f, "offsets must rise from 0 to the ", f.limit, " rows of q, got ", f.value,
                           " at position ", f.at);
    case DataError::position:
      raise_as<ValueError>(f, attention_input(f.input), "[", f.at, "] is ", f.value, ", outside 0..", f.limit,
                           " keys");
    case DataError::length:
      raise_as<ValueError>(f, "lengths[", f.at, "] is ", f.value, ", outside 0..", f.limit, " steps");
    case DataError::cover:
      raise_as<ShapeError>(f, attention_input(f.input), " must cover the longest sequence, ", f.value,
                           " rows, got ", f.size[2], " by ", f.size[3]);
    case DataError::index:
    case DataError::none: break;
  }
  raise_as<IndexError>(f, "index ", f.value, " at position ", position(f),
                       " is out of range for an axis of size ", f.limit);
}

}  // namespace plmcore
