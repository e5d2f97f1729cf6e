// Program files: docs/program-format.md. Reading maps the file; the weights are used where they lie.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "core/device.h"
#include "program/header.h"

namespace plmcore {

static_assert(std::endian::native == std::endian::little, "program files are little-endian and are used in place");

namespace {

constexpr char kMagic[8] = {'\x89', 'P', 'L', 'M', '\r', '\n', '\x1a', '\n'};  // spoiled by every text conversion
constexpr uint32_t kVersion = 1;
constexpr uint64_t kAlign = 64;

struct Prefix {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint64_t header_bytes;
};
static_assert(sizeof(Prefix) == 24);

constexpr uint64_t aligned(uint64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

[[noreturn]] void system_failed(const char* what, const std::string& path, int code) {
  throw FileError(std::string("cannot ") + what + " '" + path + "': " + std::strerror(code), code);
}

class FileHandle {
 public:
  FileHandle(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) system_failed("open", path, errno);
  }
  ~FileHandle() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileHandle(const FileHandle&) = delete;
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// ---- loading ----

struct Mapping {
  void* data;
  size_t bytes;
};

// The file's bytes as a storage that unmaps them at its end. Private and writable: an op that writes to a weight (a cache, an
// optimiser step) changes this process's copy of the page, never the file.
Ref<Storage> map_file(const std::string& path) {
  const FileHandle file(path, O_RDONLY);
  struct stat info;
  if (::fstat(file.get(), &info) != 0) system_failed("read", path, errno);
  if (S_ISDIR(info.st_mode)) system_failed("read", path, EISDIR);
  check<FormatError>(S_ISREG(info.st_mode), "'", path, "' is not a plmcore program: not a regular file");
  const auto bytes = static_cast<size_t>(info.st_size);
  check<FormatError>(bytes >= sizeof(Prefix), "'", path, "' is not a plmcore program: it has only ", bytes, " bytes");
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) system_failed("map", path, errno);
  auto* mapping = new Mapping{data, bytes};
  return Ref<Storage>(new Storage(cpu(), data, bytes, mapping, [](void* p) {
    auto* m = static_cast<Mapping*>(p);
    ::munmap(m->data, m->bytes);
    delete m;
  }));
}

std::string_view header_text(const Storage& file) {
  Prefix prefix;
  std::memcpy(&prefix, file.data, sizeof prefix);
  check<FormatError>(std::memcmp(prefix.magic, kMagic, sizeof kMagic) == 0, "it does not start with the mark of a program file");
  check<FormatError>(prefix.version <= kVersion, "it has format ", prefix.version, ", this version of plmcore reads up to ", kVersion,
                     "; install a newer one");
  check<FormatError>(prefix.version == kVersion && prefix.reserved == 0, "its format number is damaged");
  check<FormatError>(prefix.header_bytes <= kMaxHeader, "its header would have ", prefix.header_bytes, " bytes, at most ", kMaxHeader,
                     " are allowed");
  check<FormatError>(prefix.header_bytes <= file.bytes - sizeof prefix, "it is cut off: the header has ", prefix.header_bytes,
                     " bytes, the file ", file.bytes);
  return {static_cast<const char*>(file.data) + sizeof prefix, prefix.header_bytes};
}

// Tensors follow each other at multiples of 64 bytes, and the file ends with the last: none can overlap or reach outside.
void check_layout(const std::vector<FileTensor>& tensors, uint64_t data_start, uint64_t file_bytes) {
  uint64_t end = 0;
  for (const FileTensor& t : tensors) {
    check<FormatError>(t.offset == aligned(end), "the tensor '", t.name, "' must start at ", aligned(end), ", got ", t.offset);
    end = t.offset + t.bytes;
    check<FormatError>(data_start + end <= file_bytes, "it is cut off: the tensor '", t.name, "' ends at byte ", data_start + end,
                       ", the file at ", file_bytes);
  }
  const uint64_t want = tensors.empty() ? data_start : data_start + end;
  check<FormatError>(want == file_bytes, "it has ", file_bytes, " bytes, the header tells of ", want);
}

// ---- saving ----

class Writer {
 public:
  Writer(const std::string& path)
      : path_(path), temporary_(path + ".tmp" + std::to_string(::getpid())), file_(temporary_, O_WRONLY | O_CREAT | O_EXCL) {}
  ~Writer() {
    if (!done_) ::unlink(temporary_.c_str());
  }

  void write(const void* data, size_t bytes) {
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
  void pad() {
    static constexpr char zeros[kAlign] = {};
    write(zeros, aligned(written_) - written_);
  }
  // Readers see the old file or the new one, never a part.
  void finish() {
    if (::fsync(file_.get()) != 0 || file_.close() != 0) system_failed("write", temporary_, errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) system_failed("write", path_, errno);
    done_ = true;
    const size_t slash = path_.find_last_of('/');
    const FileHandle folder(slash == std::string::npos ? "." : path_.substr(0, slash + 1), O_RDONLY | O_DIRECTORY);
    ::fsync(folder.get());  // some file systems cannot; the rename has happened
  }

 private:
  std::string path_, temporary_;
  FileHandle file_;
  size_t written_ = 0;
  bool done_ = false;
};

// The weights of all programs, each once: two constants over the same memory with the same spec are one tensor.
class TensorList {
 public:
  std::vector<Header::Constant> add(std::string_view program, const Program::Body& body) {
    std::vector<Header::Constant> constants;
    for (size_t v = 1; v < body.values.size(); ++v) {
      const Value& value = body.values[v];
      if (!value.constant.defined()) continue;
      check<ValueError>(!value.constant.is_row_sparse(), "export: the constant '", value.name,
                        "' is a row-sparse gradient; call to_dense() on it first");
      constants.push_back({static_cast<int32_t>(v), place(program, value)});
    }
    return constants;
  }
  std::vector<FileTensor> entries;
  std::vector<Tensor> tensors;  // beside entries

 private:
  size_t place(std::string_view program, const Value& value) {
    const Tensor& t = value.constant;
    const auto [it, fresh] = places_.try_emplace({t.data(), t.dtype(), t.shape().str()}, entries.size());
    if (fresh) {
      const uint64_t start = entries.empty() ? 0 : aligned(entries.back().offset + entries.back().bytes);
      entries.push_back({unique(program, value.name), t.spec(), start, t.bytes()});
      tensors.push_back(t);
    }
    return it->second;
  }
  std::string unique(std::string_view program, const std::string& name) {
    std::string wish = name.empty() ? "constant" : name;
    if (names_.count(wish)) wish = std::string(program) + "." + wish;
    std::string found = wish;
    for (int k = 2; !names_.insert(found).second; ++k) found = wish + "." + std::to_string(k);
    return found;
  }

  std::map<std::tuple<const void*, DType, std::string>, size_t> places_;
  std::set<std::string> names_;
};

}  // namespace

Model Model::load(const std::string& path) {
  const Ref<Storage> file = map_file(path);
  try {
    const std::string_view text = header_text(*file);
    Header header = read_header(text);
    const uint64_t start = aligned(sizeof(Prefix) + text.size());
    check_layout(header.tensors, header.tensors.empty() ? sizeof(Prefix) + text.size() : start, file->bytes);
    std::vector<Tensor> tensors;
    for (const FileTensor& t : header.tensors) {
      Tensor& tensor = tensors.emplace_back(new TensorImpl);
      tensor.impl()->spec = t.spec;
      tensor.impl()->device = &cpu();
      tensor.impl()->storage = file;
      tensor.impl()->offset = t.bytes ? start + t.offset : 0;
    }
    Model model;
    for (auto& [name, program, constants] : header.programs) {
      for (const auto& [value, tensor] : constants) program.body().values[value].constant = tensors[tensor];
      model.programs_.emplace_back(std::move(name), std::move(program));
    }
    return model;
  } catch (const FormatError& e) { fail<FormatError>("'", path, "' cannot be read: ", e.what()); }
}

void Model::save(const std::string& path, const std::vector<std::pair<std::string, const Program*>>& programs) {
  check<ValueError>(!programs.empty(), "export: there is no program to write");
  TensorList list;
  std::vector<NamedBody> bodies;
  for (const auto& [name, program] : programs) bodies.push_back({name, &program->body(), list.add(name, program->body())});
  const std::string header = write_header(list.entries, bodies);
  check<ValueError>(header.size() <= kMaxHeader, "export: the programs take ", header.size(), " bytes, at most ", kMaxHeader,
                    " are allowed");
  try {
    read_header(header);  // what is written can be read: names that repeat, empty ones
  } catch (const FormatError& e) { fail<ValueError>("export: ", e.what()); }

  Prefix prefix = {{}, kVersion, 0, header.size()};
  std::memcpy(prefix.magic, kMagic, sizeof kMagic);
  Writer out(path);
  out.write(&prefix, sizeof prefix);
  out.write(header.data(), header.size());
  for (const Tensor& t : list.tensors) {
    out.pad();
    const Tensor host = t.to(cpu());
    out.write(host.data(), host.bytes());
  }
  out.finish();
}

std::vector<std::string> Model::names() const {
  std::vector<std::string> list;
  for (const auto& [name, program] : programs_) list.push_back(name);
  return list;
}

const Program& Model::program(std::string_view name) const {
  std::string known;
  for (const auto& [n, program] : programs_) {
    if (n == name) return program;
    known += (known.empty() ? "'" : ", '") + n + "'";
  }
  fail<ValueError>("the file has no program '", name, "'; it has ", known);
}

Tensors Model::run(const Tensors& inputs) const {
  check<ValueError>(programs_.size() == 1, "the file has ", programs_.size(), " programs; name the one to run");
  return programs_[0].second.run(inputs);
}

}  // namespace plmcore
