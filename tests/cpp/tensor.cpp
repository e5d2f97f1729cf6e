#include "plmcore/tensor.h"

#include <thread>
#include <vector>

#include "plmcore/ops.h"
#include "test.h"

using namespace plmcore;

TEST(tensor_borrows_memory) {
  static int freed;
  freed = 0;
  float data[6] = {1, 2, 3, 4, 5, 6};
  {
    const Tensor t =
        Tensor::borrow({2, 3}, DType::float32, data, &freed, [](void* p) { ++*static_cast<int*>(p); });
    const Tensor view = reshape(t, {3, 2});
    CHECK(view.as<float>() == data);
    CHECK_EQ(freed, 0);
  }
  CHECK_EQ(freed, 1);
}

TEST(tensor_gradients_without_python) {
  const Tensor x = Tensor::zeros({4}, DType::float32);
  for (int i = 0; i < 4; ++i) x.as<float>()[i] = static_cast<float>(i);
  x.set_requires_grad(true);
  const Tensor y = mul(x, x);
  y.backward(full({4}, 1.0, DType::float32));
  for (int i = 0; i < 4; ++i) CHECK_EQ(x.grad().as<float>()[i], 2.f * static_cast<float>(i));
  CHECK_THROWS(GraphError, "already used and freed", (y.backward(full({4}, 1.0, DType::float32)), 0));
}

TEST(tensor_counts_are_atomic) {
  const Tensor shared = Tensor::zeros({64}, DType::float32);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        const Tensor copy = shared;
        (void)copy;
      }
    });
  for (auto& t : threads) t.join();
  CHECK_EQ(shared.impl()->refs.load(), 1);
}

TEST(a_long_chain_is_released) {
  Tensor x = Tensor::zeros({1}, DType::float32);
  x.set_requires_grad(true);
  for (int i = 0; i < 200000; ++i) x = add(x, x);
  x = {};
}
