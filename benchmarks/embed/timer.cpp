// A contestant of benchmarks/embed: answers lines on standard input with numbers on standard output.
//   timer MODEL.plm THREADS IDS.bin B T NEW
// IDS.bin: int64 [B, T]; NEW: tokens to make, 0: an encoder's states. "outputs": values to compare; "time":
// seconds of one run, "cpu": those of its processor; "one", "two": of so many sessions at once, each on a
// thread of its own; "first": from the start of the process to the first token.
#include <plmcore/session.h>
#include <plmcore/threads.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Case {
  plmcore::Tensor ids;  // int64 [B, T]
  int64_t made;

  std::vector<double> run(plmcore::Session& session) const {
    std::vector<double> found;
    const int64_t B = ids.size(0).value(), T = ids.size(1).value();
    if (made > 0) {
      plmcore::Options options;
      options.max_new_tokens = made;
      std::vector<std::vector<int64_t>> prompts;
      for (int64_t b = 0; b < B; ++b)
        prompts.emplace_back(ids.as<int64_t>() + b * T, ids.as<int64_t>() + (b + 1) * T);
      for (const auto& each : session.generate(prompts, options))
        for (int64_t token : each[0].tokens) found.push_back(static_cast<double>(token));
      return found;
    }
    const plmcore::Tensor mask = plmcore::Tensor::empty({B, T}, plmcore::DType::int64),
                          types = plmcore::Tensor::zeros({B, T}, plmcore::DType::int64);
    std::fill_n(mask.as<int64_t>(), B * T, 1);
    const auto out =
        session.run("encode", {{"input_ids", ids}, {"attention_mask", mask}, {"token_type_ids", types}});
    const plmcore::Tensor& states = out.at("last_hidden_state");
    for (int64_t i = 0; i < states.numel(); i += 7919) found.push_back(states.as<float>()[i]);
    return found;
  }
};

Case read(const char* path, int64_t B, int64_t T, int64_t made) {
  const plmcore::Tensor ids = plmcore::Tensor::empty({B, T}, plmcore::DType::int64);
  std::ifstream(path, std::ios::binary).read(ids.as<char>(), static_cast<std::streamsize>(ids.bytes()));
  return {ids, made};
}

}  // namespace

int main(int argc, char** argv) try {
  const auto start = Clock::now();
  if (argc != 7) return std::fprintf(stderr, "usage: timer MODEL.plm THREADS IDS.bin B T NEW\n"), 2;
  const plmcore::Model model = plmcore::Model::load(argv[1]);
  plmcore::set_num_threads(std::stoi(argv[2]));
  plmcore::Session session(model);
  const Case one = read(argv[3], std::stoll(argv[4]), std::stoll(argv[5]), std::stoll(argv[6]));
  for (std::string line; std::getline(std::cin, line);) {
    const auto begin = Clock::now();
    if (line == "first") {  // from the start of the process on
      plmcore::Options options;
      options.max_new_tokens = 1;
      session.generate({{1000}}, options);
      std::printf("%.6f", seconds(start));
    } else if (line == "outputs") {
      for (double x : one.run(session)) std::printf("%.9g ", x);
    } else if (line == "time" || line == "cpu") {
      const std::clock_t before = std::clock();
      one.run(session);
      const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
      std::printf("%.6f", line == "cpu" ? used : seconds(begin));
    } else {
      std::vector<std::thread> threads;
      for (int k = 0; k < (line == "two" ? 2 : 1); ++k)
        threads.emplace_back([&] {
          plmcore::Session mine(model, 1);
          one.run(mine);
        });
      for (std::thread& t : threads) t.join();
      std::printf("%.6f", seconds(begin));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
