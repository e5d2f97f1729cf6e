#include <cstdio>
#include <cstring>
#include <exception>

#include "test.h"

// plmcore_tests [part of a name]
int main(int argc, char** argv) {
  int run = 0, failed = 0;
  for (const plmtest::Test& t : plmtest::tests()) {
    if (argc > 1 && !std::strstr(t.name, argv[1])) continue;
    ++run;
    try {
      t.body();
    } catch (const plmtest::Failure& f) {
      ++failed;
      std::printf("FAILED %s: %s\n", t.name, f.text.c_str());
    } catch (const std::exception& e) {
      ++failed;
      std::printf("FAILED %s: unexpected exception: %s\n", t.name, e.what());
    }
  }
  std::printf("%d tests, %d failed\n", run, failed);
  return failed || !run;
}
