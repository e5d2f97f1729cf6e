#include "plmcore/error.h"

#include <cstdio>
#include <new>

namespace plmcore {

Error::~Error() = default;
ShapeError::~ShapeError() = default;
ValueError::~ValueError() = default;
IndexError::~IndexError() = default;
DTypeError::~DTypeError() = default;
DeviceError::~DeviceError() = default;
GraphError::~GraphError() = default;
TraceError::~TraceError() = default;
FormatError::~FormatError() = default;
MemoryError::~MemoryError() = default;
BusyError::~BusyError() = default;
FileError::~FileError() = default;

ErrorCode code_of(const std::exception& e) {
  const auto is = [&]<class E>() { return dynamic_cast<const E*>(&e) != nullptr; };
  if (is.operator()<ShapeError>()) return ErrorCode::shape;
  if (is.operator()<ValueError>()) return ErrorCode::value;
  if (is.operator()<IndexError>()) return ErrorCode::index;
  if (is.operator()<DTypeError>()) return ErrorCode::dtype;
  if (is.operator()<DeviceError>()) return ErrorCode::device;
  if (is.operator()<GraphError>()) return ErrorCode::graph;
  if (is.operator()<TraceError>()) return ErrorCode::trace;
  if (is.operator()<FormatError>()) return ErrorCode::format;
  if (is.operator()<MemoryError>() || is.operator()<std::bad_alloc>()) return ErrorCode::memory;
  if (is.operator()<BusyError>()) return ErrorCode::busy;
  return is.operator()<FileError>() ? ErrorCode::file : ErrorCode::other;
}

void append(std::string& text, double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", x);
  text += buffer;
}

}  // namespace plmcore
