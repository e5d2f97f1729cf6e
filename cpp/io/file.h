// Files of tensors: mapped or read, written under a temporary name. Regular files only.
#pragma once

#include <fcntl.h>

#include <string>
#include <string_view>

#include "plmcore/tensor.h"

namespace plmcore {

// FileError: cannot <what> '<path>': what the system says.
[[noreturn]] void system_failed(const char* what, const std::string& path, int code);

// Text from a file as it may stand in a message: cut to 100 bytes; what is not UTF-8 or not visible becomes
// '?'.
std::string printable(std::string_view text);

class FileHandle {
 public:
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(const std::string& path, int flags);
  ~FileHandle();
  FileHandle(const FileHandle&) = delete;
  int get() const { return fd_; }
  int close();

 private:
  int fd_;
};

// The file's bytes as a storage. Mapped: private and writable, unmapped at its end; an op that writes to a
// weight (a cache, an optimiser step) changes this process's copy of the page, never the file. Who cuts a
// mapped file short ends the process that looks at what is gone (SIGBUS). Not mapped: memory, into which the
// file was read. FormatError for a file that is not a regular one or has fewer than `least` bytes; `what` is
// what it should be, "a plmcore program".
Ref<Storage> open_file(const std::string& path, const char* what, size_t least, bool mapped);

// A tensor over bytes of an open file, which are there. Where it lies askew for its dtype, or a bool is
// neither 0 nor 1 (kernels may rely on it), a copy.
Tensor tensor_in_file(const Ref<Storage>& file, size_t offset, const Spec& spec);

// Readers see the old file or the new one, never a part. Without finish() nothing is left behind. ValueError
// where something that is not a regular file has the name: a device, a pipe, a link.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;

  void write(const void* data, size_t bytes);
  void write(const Tensor& t);       // its values, from any device
  void pad(size_t align);            // zeros up to a multiple; at most 64
  void finish();                     // on disk, then under its name

 private:
  std::string path_, temporary_;
  FileHandle file_;
  size_t written_ = 0;
  bool done_ = false;
};

}  // namespace plmcore
