// Typed exceptions and `check`. Each type becomes a Python exception of its own (python/bindings/errors.cpp).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace plmcore {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
  ~Error() override;
};
// The destructors are defined in one place, and so the type information that `catch` compares: kernels are
// compiled several times.
#define PLM_ERROR(Type) \
  struct Type : Error { \
    using Error::Error; \
    ~Type() override;   \
  }
PLM_ERROR(ShapeError);  // sizes or ranks that do not fit          -> ValueError
PLM_ERROR(ValueError);  // an argument outside its range           -> ValueError
PLM_ERROR(IndexError);  // an index outside its axis               -> IndexError
PLM_ERROR(DTypeError);  // a dtype an op does not take             -> TypeError
PLM_ERROR(DeviceError);  // device missing, mixed, or failed        -> RuntimeError
PLM_ERROR(GraphError);  // misuse of the tape                      -> RuntimeError
PLM_ERROR(TraceError);  // what a traced program cannot express    -> RuntimeError
PLM_ERROR(FormatError);  // a malformed file                        -> ValueError
PLM_ERROR(MemoryError);  // more memory than allowed or present     -> MemoryError
PLM_ERROR(BusyError);  // a session that another thread is using  -> RuntimeError
#undef PLM_ERROR

struct FileError : Error {  // the system cannot open, read or write   -> OSError, FileNotFoundError, ...
  FileError(const std::string& what, int code) : Error(what), code(code) {}
  ~FileError() override;
  int code;  // errno
};

// The kinds of errors by number, for callers that have no exceptions: those of plmcore.h.
enum class ErrorCode {
  none,
  shape,
  value,
  index,
  dtype,
  device,
  graph,
  trace,
  format,
  memory,
  busy,
  file,
  other
};
ErrorCode code_of(const std::exception& e);

// append(text, value) writes a value into a message; types of the library add their own overloads.
inline void append(std::string& text, std::string_view s) { text += s; }
inline void append(std::string& text, const char* s) { text += s; }
inline void append(std::string& text, bool b) { text += b ? "true" : "false"; }
void append(std::string& text, double x);
template <class I>
  requires std::is_integral_v<I>
void append(std::string& text, I i) {
  text += std::to_string(i);
}

template <class E, class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  std::string text;
  (append(text, parts), ...);
  throw E(text);
}

// check(cond, "layer_norm: gamma must be ", want, ", got ", got): the message is built only on failure.
template <class E = ShapeError, class... Parts>
inline void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail<E>(parts...);
}

}  // namespace plmcore
