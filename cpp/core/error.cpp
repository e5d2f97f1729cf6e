#include "plmcore/error.h"

#include <cstdio>

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
FileError::~FileError() = default;

void append(std::string& text, double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", x);
  text += buffer;
}

}  // namespace plmcore
