// The loop without Python, over a step function. tests/generate has the rules of the search.
#include "plmcore/generate.h"

#include "plmcore/ops.h"
#include "test.h"

using namespace plmcore;

namespace {
constexpr int64_t kV = 5;

// The token after t is t + 1, less surely t + 2; 0 ends.
Tensor logits_after(const std::vector<int64_t>& tokens) {
  const auto rows = static_cast<int64_t>(tokens.size());
  Tensor t = Tensor::zeros({Dim(rows), Dim(kV)}, DType::float32);
  for (int64_t r = 0; r < rows; ++r) {
    t.as<float>()[r * kV + (tokens[static_cast<size_t>(r)] + 1) % kV] = 4;
    t.as<float>()[r * kV + (tokens[static_cast<size_t>(r)] + 2) % kV] = 2;
  }
  return t;
}

std::vector<std::vector<int64_t>> run(SearchOptions options,
                                      const std::vector<std::vector<int64_t>>& prompts) {
  Search search(prompts, std::move(options));
  generate(search, [&](const Tensor& live, const Tensor&, const Tensor& tokens) {
    if (!live.defined()) {
      std::vector<int64_t> last;
      for (const auto& p : prompts) last.push_back(p.back());
      return logits_after(last);
    }
    return logits_after({tokens.as<int64_t>(), tokens.as<int64_t>() + tokens.numel()});
  });
  CHECK(search.done());
  std::vector<std::vector<int64_t>> found;
  for (size_t i = 0; i < prompts.size(); ++i)
    for (const Completion& s : search.result(static_cast<int64_t>(i))) found.push_back(s.tokens);
  return found;
}
}  // namespace

TEST(generate_greedy_and_beams) {
  SearchOptions o;
  o.max_new_tokens = 6;
  o.eos = {0};
  CHECK(run(o, {{1}, {3, 3}}) == std::vector<std::vector<int64_t>>{{2, 3, 4, 0}, {4, 0}});
  o.beams = 3;
  CHECK(run(o, {{3}}) == std::vector<std::vector<int64_t>>{{4, 0}});
  o.groups = 3;
  o.diversity = 50;
  CHECK(run(o, {{3}}).size() == 1);
}

TEST(generate_samples_depend_on_the_seed_alone) {
  SearchOptions o;
  o.max_new_tokens = 12;
  o.sample = true;
  o.seeds = {7, 8};
  const auto both = run(o, {{1}, {1}});
  o.seeds = {8};
  CHECK(both[1] == run(o, {{1}})[0]);
  CHECK(both[0] != both[1]);
}

TEST(generate_errors) {
  SearchOptions o;
  o.beams = 0;
  CHECK_THROWS(ValueError, "num_beams must be at least 1, got 0", Search({{1}}, o));
  o.beams = 2;
  Search search({{1}}, o);
  CHECK_THROWS(ShapeError, "logits must be [1, 1, V]",
               search.accept(Tensor::zeros({Dim(3), Dim(kV)}, DType::float32)));
  CHECK_THROWS(IndexError, "there are 1 prompts", search.result(1));
  Search failing({{1}}, o);
  CHECK_THROWS(Error, "the model failed",
               generate(failing, [](const Tensor&, const Tensor&, const Tensor&) -> Tensor {
                 throw Error("the model failed");
               }));
  generate(failing, [](const Tensor& live, const Tensor&, const Tensor& tokens) {
    return live.defined() ? logits_after({tokens.as<int64_t>(), tokens.as<int64_t>() + tokens.numel()})
                          : logits_after({1});
  });
  CHECK(failing.result(0).size() == 1);
}
