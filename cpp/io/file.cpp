#include "io/file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/device.h"

namespace plmcore {

void system_failed(const char* what, const std::string& path, int code) {
  throw FileError(std::string("cannot ") + what + " '" + path + "': " + std::strerror(code), code);
}

// The length of the UTF-8 character at the start of `s`, 0 where there is none.
static size_t character(std::string_view s) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (first < 0xc2 || first >= 0xf5) return 0;
  size_t n = 2;
  if (first >= 0xe0) n = first < 0xf0 ? 3 : 4;
  if (s.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && at(1) < 0xa0) || (first == 0xf0 && at(1) < 0x90);
  const bool no_character = (first == 0xed && at(1) >= 0xa0) || (first == 0xf4 && at(1) >= 0x90);
  return overlong || no_character ? 0 : n;
}

std::string printable(std::string_view text) {
  constexpr size_t kMost = 100;
  std::string out;
  while (!text.empty()) {
    const size_t n = character(text);
    if (out.size() + std::max<size_t>(n, 1) > kMost) return out + "...";
    if (n) out += text.substr(0, n);
    else out += '?';
    text.remove_prefix(std::max<size_t>(n, 1));
  }
  return out;
}

FileHandle::FileHandle(const std::string& path, int flags)
    : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
  if (fd_ < 0) system_failed("open", path, errno);
}
FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}
int FileHandle::close() { return ::close(std::exchange(fd_, -1)); }

// ---- reading ----

static Ref<Storage> read_whole(const FileHandle& file, const std::string& path, size_t bytes) {
  const Tensor memory = Tensor::empty({static_cast<int64_t>(bytes)}, DType::uint8);
  auto* to = memory.as<uint8_t>();
  for (size_t at = 0; at < bytes;) {
    const ssize_t n =
        ::pread(file.get(), to + at, std::min(bytes - at, size_t{1} << 30), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) system_failed("read", path, errno);
    check<FormatError>(n > 0, "'", path, "' became shorter while it was read: ", at, " of ", bytes,
                       " bytes are left");
    at += static_cast<size_t>(n);
  }
  return memory.impl()->storage;
}

Ref<Storage> open_file(const std::string& path, const char* what, size_t least, bool mapped) {
  struct Mapping {
    void* data;
    size_t bytes;
  };
  const FileHandle file(path, O_RDONLY | O_NONBLOCK);  // a pipe must not wait for its writer
  struct stat info;
  if (::fstat(file.get(), &info) != 0) system_failed("read", path, errno);
  if (S_ISDIR(info.st_mode)) system_failed("read", path, EISDIR);
  check<FormatError>(S_ISREG(info.st_mode), "'", path, "' is not ", what, ": not a regular file");
  const auto bytes = static_cast<size_t>(info.st_size);
  check<FormatError>(bytes >= least, "'", path, "' is not ", what, ": it has only ", bytes, " bytes");
  if (!mapped) return read_whole(file, path, bytes);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) system_failed("map", path, errno);
  auto* mapping = new Mapping{data, bytes};
  return Ref<Storage>(new Storage(cpu(), data, bytes, mapping, [](void* p) {
    auto* m = static_cast<Mapping*>(p);
    ::munmap(m->data, m->bytes);
    delete m;
  }));
}

Tensor tensor_in_file(const Ref<Storage>& file, size_t offset, const Spec& spec) {
  const auto* data = static_cast<const uint8_t*>(file->data) + offset;
  const size_t bytes = static_cast<size_t>(spec.shape.numel().value()) * size_of(spec.dtype);
  const bool askew = reinterpret_cast<uintptr_t>(data) % size_of(spec.dtype) != 0;
  const bool odd =
      spec.dtype == DType::boolean && std::any_of(data, data + bytes, [](uint8_t b) { return b > 1; });
  if (bytes != 0 && (askew || odd)) {
    Tensor t = Tensor::empty(spec.shape, spec.dtype);
    if (odd)
      std::transform(data, data + bytes, t.as<uint8_t>(),
                     [](uint8_t b) { return static_cast<uint8_t>(b != 0); });
    else std::memcpy(t.data(), data, bytes);
    return t;
  }
  // Each tensor has a storage of its own: what is lent or kept of one does not concern the others.
  file->retain();
  return Tensor::borrow(spec.shape, spec.dtype, const_cast<uint8_t*>(data), file.get(),
                        [](void* f) { static_cast<Storage*>(f)->release(); });
}

// ---- writing ----

// A rename would put a file in the place of whatever has the name.
static void check_replaceable(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return;
  if (S_ISDIR(info.st_mode)) system_failed("write", path, EISDIR);
  check<ValueError>(S_ISREG(info.st_mode), "'", path, "' is ",
                    S_ISLNK(info.st_mode) ? "a link" : "a device or a pipe",
                    "; only regular files are written: choose another name");
}

// A name that no other process or thread writes to, and that a dead one may have left.
static int open_new(const std::string& path, std::string& temporary) {
  check_replaceable(path);
  for (int k = 0;; ++k) {
    temporary = path + ".tmp" + std::to_string(::getpid()) + (k ? "." + std::to_string(k) : "");
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return fd;
    if (errno != EEXIST || k == 100) system_failed("open", temporary, errno);
  }
}

FileWriter::FileWriter(const std::string& path) : path_(path), file_(open_new(path, temporary_)) {}
FileWriter::~FileWriter() {
  if (!done_) ::unlink(temporary_.c_str());
}

void FileWriter::write(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  written_ += bytes;
  while (bytes > 0) {
    const ssize_t n = ::write(file_.get(), p, std::min(bytes, size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) system_failed("write", temporary_, n < 0 ? errno : ENOSPC);
    p += n;
    bytes -= static_cast<size_t>(n);
  }
}
void FileWriter::write(const Tensor& t) {
  const Tensor host = t.detach().to(cpu());
  write(host.data(), host.bytes());
}
void FileWriter::pad(size_t align) {
  static constexpr char zeros[64] = {};
  write(zeros, (align - written_ % align) % align);
}
void FileWriter::finish() {
  if (::fsync(file_.get()) != 0 || file_.close() != 0) system_failed("write", temporary_, errno);
  check_replaceable(path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) system_failed("write", path_, errno);
  done_ = true;
  const size_t slash = path_.find_last_of('/');
  const FileHandle folder(slash == std::string::npos ? "." : path_.substr(0, slash + 1),
                          O_RDONLY | O_DIRECTORY);
  ::fsync(folder.get());  // some file systems cannot; the rename has happened
}

}  // namespace plmcore
