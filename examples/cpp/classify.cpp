// A classifier in a program with eight threads: one model, a session for each thread.
//   classify classifier.plm "a text" "another" ...
#include <plmcore/text.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <thread>

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "usage: classify MODEL.plm TEXT...\n"), 2;
  const plmcore::Model model = plmcore::Model::load(argv[1]);
  const plmcore::Text text(model);
  const std::vector<std::string> texts(argv + 2, argv + argc);
  std::vector<plmcore::Classified> found(texts.size());

  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  std::exception_ptr error;
  std::atomic<bool> failed{false};
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&] {
      try {
        plmcore::Session session(model, 1);  // on its own thread: it waits for no other
        for (size_t i; (i = next++) < texts.size();) found[i] = session.classify({text.encode(texts[i])})[0];
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  for (size_t i = 0; i < texts.size(); ++i)
    std::printf("%-12s %.3f  %s\n", found[i].label.c_str(), found[i].probability, texts[i].c_str());
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
