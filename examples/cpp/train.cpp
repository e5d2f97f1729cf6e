// Training in C++: a small network learns XOR, and is written as a file that plm.safetensors.read opens.
//   train xor.safetensors
#include <plmcore/ops.h>
#include <plmcore/optim.h>
#include <plmcore/random.h>
#include <plmcore/safetensors.h>

#include <algorithm>
#include <cstdio>
#include <exception>

using plmcore::DType;
using plmcore::Tensor;

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: train OUT.safetensors\n"), 2;
  float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1};
  int64_t answers[] = {0, 1, 1, 0};
  const Tensor x = Tensor::borrow({4, 2}, DType::float32, inputs, nullptr, nullptr);  // over our own memory
  const Tensor y = Tensor::borrow({4}, DType::int64, answers, nullptr, nullptr);

  plmcore::manual_seed(1);
  const auto drawn = [](const plmcore::Shape& shape) {
    return plmcore::normal(shape, 0, 0.7, DType::float32);
  };
  plmcore::safetensors::Named weights = {{"up.weight", drawn({16, 2})},
                                         {"up.bias", Tensor::zeros({16}, DType::float32)},
                                         {"down.weight", drawn({2, 16})},
                                         {"down.bias", Tensor::zeros({2}, DType::float32)}};
  std::vector<plmcore::ParamState> states;
  for (const auto& [name, weight] : weights) states.push_back({weight.set_requires_grad(true), {}, {}, 0});
  std::vector<plmcore::ParamState*> all;
  for (auto& state : states) all.push_back(&state);

  const plmcore::StepOptions options = {{"lr", 0.05}};
  double loss = 0;
  for (int step = 0; step < 200; ++step) {
    const Tensor h = plmcore::linear(x, weights[0].second, weights[1].second, plmcore::Activation::tanh);
    const Tensor logits = plmcore::linear(h, weights[2].second, weights[3].second);
    const Tensor error = plmcore::cross_entropy(logits, y, {});
    loss = error.item();
    plmcore::zero_grad(all);
    error.backward();
    plmcore::step_all(plmcore::optimiser_from_name("adam"), all, options);
  }
  plmcore::safetensors::write(argv[1], weights);
  std::printf("loss %.4f\n", loss);
  return loss < 0.05 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
