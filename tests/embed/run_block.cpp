// Loads a Transformer block with its weights and runs it at every shape of its expectations, without Python.
//   run_block block.plm expected.bin
// expected.bin, little-endian: int64 count; per case int64 B, T, C, then float32 x [B, T, C] and y [B, T, C].
#include <plmcore/error.h>
#include <plmcore/program.h>
#include <plmcore/threads.h>

#include <cstdio>

#include "expectations.h"

using plmcore::DType;
using plmcore::Tensor;

namespace {

int run(const char* model_path, const char* expected_path) {
  const plmcore::Model model = plmcore::Model::load(model_path);
  for (const auto& [name, spec] : model.program("main").inputs())
    std::printf("input %s %s\n", name.c_str(), spec.shape.str().c_str());
  Bytes expected(expected_path);
  const int64_t cases = expected.integer();
  for (int64_t k = 0; k < cases; ++k) {
    const int64_t B = expected.integer(), T = expected.integer(), C = expected.integer();
    const Tensor x = Tensor::empty({B, T, C}, DType::float32),
                 want = Tensor::empty({B, T, C}, DType::float32);
    expected.read(x);
    expected.read(want);
    for (const int threads : {1, 2}) {
      plmcore::set_num_threads(threads);
      const Tensor y = model.run({x})[0];
      if (!y.shape().matches(want.shape())) return std::printf("got %s\n", y.shape().str().c_str()), 1;
      const double worst = largest_difference(y, want);
      std::printf("[%ld, %ld, %ld] with %d threads: largest difference %.3g\n", static_cast<long>(B),
                  static_cast<long>(T), static_cast<long>(C), threads, worst);
      if (!(worst <= 1e-6)) return 1;
    }
  }
  try {
    model.run({Tensor::zeros({1, 1, 3}, DType::float32)});
    std::printf("a wrong width was accepted\n");
    return 1;
  } catch (const plmcore::ShapeError& e) { std::printf("a wrong width: %s\n", e.what()); }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::printf("usage: run_block block.plm expected.bin\n"), 2;
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
