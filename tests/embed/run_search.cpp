// Generates with a model that plm.export wrote, over its cache. No Python in this process.
//   run_search gpt2.plm tokens.bin
// A case of tokens.bin: int64 beams, then the prompts and the tokens that follow them, each as int64 count of
// rows and for each row int64 length and its ids.
#include <plmcore/generate.h>

#include <cstdio>

#include "expectations.h"

namespace {

int run(const char* model_path, const char* expected_path) {
  const plmcore::Model model = plmcore::Model::load(model_path);
  Bytes expected(expected_path);
  for (int64_t cases = expected.integer(); cases > 0; --cases) {
    plmcore::SearchOptions options;
    options.beams = expected.integer();
    options.max_new_tokens = 12;
    options.eos = {2};
    const Rows prompts = rows(expected), want = rows(expected);
    plmcore::Search search(prompts, options);
    plmcore::generate(search, plmcore::Decoder(model, prompts));
    for (size_t i = 0; i < prompts.size(); ++i)
      if (search.result(static_cast<int64_t>(i))[0].tokens != want[i])
        return std::printf("prompt %zu: other tokens than Python's\n", i), 1;
    std::printf("%ld beams: %zu prompts, the same tokens\n", static_cast<long>(options.beams),
                prompts.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::printf("usage: run_search gpt2.plm tokens.bin\n"), 2;
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
