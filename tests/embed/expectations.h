// What a program must give, as make_model.py wrote it: little-endian; int64 count, then the cases.
#pragma once

#include <plmcore/tensor.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

class Bytes {
 public:
  explicit Bytes(const char* path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  void read(void* to, size_t n) {
    if (at_ + n > bytes_.size()) throw std::runtime_error("the expectations are cut off");
    std::memcpy(to, bytes_.data() + at_, n);
    at_ += n;
  }
  void read(const plmcore::Tensor& to) { read(to.data(), to.bytes()); }
  int64_t integer() {
    int64_t n;
    read(&n, sizeof n);
    return n;
  }

 private:
  std::vector<char> bytes_;
  size_t at_ = 0;
};

using Rows = std::vector<std::vector<int64_t>>;

inline Rows rows(Bytes& file) {
  Rows found(static_cast<size_t>(file.integer()));
  for (auto& row : found) {
    row.resize(static_cast<size_t>(file.integer()));
    for (int64_t& id : row) id = file.integer();
  }
  return found;
}

inline double largest_difference(const plmcore::Tensor& a, const plmcore::Tensor& b) {
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i)
    worst = std::fmax(worst, std::fabs(a.as<float>()[i] - b.as<float>()[i]));
  return worst;
}
