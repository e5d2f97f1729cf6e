#include "plmcore/safetensors.h"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "test.h"

using namespace plmcore;

namespace {

// A path in a folder of its own; both go at the end.
struct Place {
  Place() {
    char name[] = "/tmp/plmcore_tests_XXXXXX";
    folder = mkdtemp(name);
    path = folder + "/f.safetensors";
  }
  ~Place() {
    unlink(path.c_str());
    rmdir(folder.c_str());
  }
  void fill(const std::string& header, const std::string& values) const {
    const uint64_t length = header.size();
    std::ofstream(path, std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&length), 8) << header << values;
  }
  std::string folder, path;
};

}  // namespace

TEST(safetensors_round_trip) {
  const Place place;
  const Tensor x = Tensor::zeros({2, 3}, DType::float32), n = Tensor::zeros({}, DType::int64),
               none = Tensor::zeros({0, 4}, DType::boolean);
  for (int i = 0; i < 6; ++i) x.as<float>()[i] = static_cast<float>(i);
  safetensors::write(place.path, {{"x", x}, {"none", none}, {"n", n}}, {{"format", "pt"}});
  Tensor kept;
  {
    const safetensors::File file = safetensors::read(place.path);
    CHECK_EQ(file.tensors.size(), size_t{3});
    CHECK_EQ(file.tensors[0].first, "n");  // eight bytes before four
    CHECK_EQ(file.metadata.at("format"), "pt");
    CHECK(file.at("none").numel() == 0);
    CHECK_THROWS(ValueError, "no tensor 'y'", file.at("y"));
    kept = file.at("x");
  }
  unlink(place.path.c_str());
  CHECK_EQ(kept.as<float>()[5], 5.f);  // the tensor keeps the mapping
}

TEST(safetensors_refuses_what_it_cannot_write) {
  const Place place;
  const Tensor x = Tensor::zeros({2}, DType::float32);
  CHECK_THROWS(ValueError, "two tensors are named 'x'",
               (safetensors::write(place.path, {{"x", x}, {"x", x}}), 0));
  CHECK_THROWS(ValueError, "not valid UTF-8", (safetensors::write(place.path, {{"\xff", x}}), 0));
  CHECK_THROWS(ValueError, "there is no tensor 'x'", (safetensors::write(place.path, {{"x", {}}}), 0));
  CHECK_THROWS(FileError, "cannot open", (safetensors::write(place.folder + "/none/f", {{"x", x}}), 0));
  CHECK(access(place.path.c_str(), F_OK) != 0);
}

TEST(safetensors_names_file_and_place) {
  const Place place;
  place.fill(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", std::string(7, '\0'));
  CHECK_THROWS(FormatError, place.path, safetensors::read(place.path));
  CHECK_THROWS(FormatError, "the tensor 'w' ends at byte 8 of the values, which have 7",
               safetensors::read(place.path));
}

TEST(safetensors_copies_what_lies_askew) {
  const Place place;
  std::string header = R"({"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})";
  while (header.size() % 8 != 3) header += ' ';
  const double value = 1.5;
  place.fill(header, std::string(reinterpret_cast<const char*>(&value), 8));
  const Tensor w = safetensors::read(place.path).at("w");
  CHECK_EQ(reinterpret_cast<uintptr_t>(w.data()) % 8, size_t{0});
  CHECK_EQ(w.item(), 1.5);
}
