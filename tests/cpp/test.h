// TEST(name) { CHECK(...); CHECK_THROWS(Type, "part of the message", expression); }   main.cpp runs all of
// them.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace plmtest {

struct Test {
  const char* name;
  void (*body)();
};
inline std::vector<Test>& tests() {
  static std::vector<Test> list;
  return list;
}
struct Register {
  Register(const char* name, void (*body)()) { tests().push_back({name, body}); }
};
struct Failure {
  std::string text;
};
[[noreturn]] inline void fail_at(const char* file, int line, const std::string& text) {
  throw Failure{std::string(file) + ":" + std::to_string(line) + ": " + text};
}

}  // namespace plmtest

#define TEST(name)                                                    \
  static void test_##name();                                          \
  static const plmtest::Register register_##name(#name, test_##name); \
  static void test_##name()
#define CHECK(...) \
  if (!(__VA_ARGS__)) plmtest::fail_at(__FILE__, __LINE__, #__VA_ARGS__)
#define CHECK_EQ(a, b)                                                    \
  do {                                                                    \
    const auto left = (a);                                                \
    const auto right = (b);                                               \
    if (!(left == right)) {                                               \
      std::ostringstream text;                                            \
      text << #a << " == " << #b << ", got " << left << " and " << right; \
      plmtest::fail_at(__FILE__, __LINE__, text.str());                   \
    }                                                                     \
  } while (false)
#define CHECK_THROWS(Type, message, ...)                                                     \
  do {                                                                                       \
    bool thrown = false;                                                                     \
    try {                                                                                    \
      (void)(__VA_ARGS__);                                                                   \
    } catch (const Type& e) {                                                                \
      thrown = true;                                                                         \
      if (std::string(e.what()).find(message) == std::string::npos)                          \
        plmtest::fail_at(__FILE__, __LINE__, e.what());                                      \
    }                                                                                        \
    if (!thrown) plmtest::fail_at(__FILE__, __LINE__, #__VA_ARGS__ " did not throw " #Type); \
  } while (false)
