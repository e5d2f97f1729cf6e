// Runs a whole model that plm.export wrote. No Python in this process.
//   run_model gpt2.plm logits.bin
// A case of logits.bin: int64 B, T, V, then int64 ids [B, T] and float32 logits [B, T, V].
#include <plmcore/program.h>

#include <algorithm>
#include <cstdio>

#include "expectations.h"

using plmcore::DType;
using plmcore::Tensor;

namespace {

int run(const char* model_path, const char* expected_path) {
  const plmcore::Model model = plmcore::Model::load(model_path);
  Bytes expected(expected_path);
  for (int64_t cases = expected.integer(); cases > 0; --cases) {
    const int64_t B = expected.integer(), T = expected.integer(), V = expected.integer();
    const Tensor ids = Tensor::empty({B, T}, DType::int64), mask = Tensor::empty({B, T}, DType::int64),
                 want = Tensor::empty({B, T, V}, DType::float32);
    expected.read(ids);
    expected.read(want);
    std::fill_n(mask.as<int64_t>(), B * T, 1);
    const Tensor logits = model.run({ids, mask})[0];
    if (!logits.shape().matches(want.shape()))
      return std::printf("got %s\n", logits.shape().str().c_str()), 1;
    const double worst = largest_difference(logits, want);
    std::printf("[%ld, %ld]: largest difference %.3g\n", static_cast<long>(B), static_cast<long>(T), worst);
    if (!(worst <= 1e-5)) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::printf("usage: run_model model.plm logits.bin\n"), 2;
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
