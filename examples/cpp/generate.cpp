// Text from a model file: greedily as it comes, then the best of four beams.
//   generate gpt2.plm "Once upon a time"
#include <plmcore/text.h>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: generate MODEL.plm TEXT\n"), 2;
  const plmcore::Model model = plmcore::Model::load(argv[1]);
  const plmcore::Text text(model);
  plmcore::Session session(model);
  const std::vector<int64_t> prompt = text.encode(argv[2]).ids;

  plmcore::Options options = model.card().generation;  // what the file says
  options.max_new_tokens = 12;
  std::vector<int64_t> tokens;
  std::string shown;
  std::printf("%s", argv[2]);
  session.generate({prompt}, options, [&](int64_t, int64_t token) {
    tokens.push_back(token);
    const std::string all = text.decode(tokens);
    if (!all.ends_with("\ufffd")) {  // else a character is not whole yet
      std::printf("%s", all.substr(shown.size()).c_str());
      std::fflush(stdout);
      shown = all;
    }
    return true;
  });

  options.beams = options.returns = 4;
  std::printf("\n\n");
  const std::vector<std::vector<plmcore::Completion>> best = session.generate({prompt}, options);
  for (const plmcore::Completion& found : best[0])
    std::printf("%8.3f  %s%s\n", found.score, argv[2], text.decode(found.tokens).c_str());
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
