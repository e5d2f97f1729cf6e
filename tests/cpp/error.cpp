// Exceptions thrown inside the library must be caught by type here, in another binary.
#include "plmcore/error.h"

#include "plmcore/ops.h"
#include "plmcore/program.h"
#include "test.h"

using namespace plmcore;

TEST(errors_cross_the_library_boundary) {
  const Tensor x = Tensor::zeros({2, 6}, DType::float32), g = Tensor::zeros({5}, DType::float32),
               wide = Tensor::zeros({6}, DType::float64);
  CHECK_THROWS(ShapeError, "layer_norm: gamma and beta must be [6]", layer_norm(x, g, g, 1e-5));
  CHECK_THROWS(Error, "layer_norm", layer_norm(x, g, g, 1e-5));
  CHECK_THROWS(DTypeError, "one dtype", layer_norm(x, wide, wide, 1e-5));
  CHECK_THROWS(IndexError, "axis 2 is out of range", x.size(2));
  CHECK_THROWS(GraphError, "", x.backward());
  CHECK_THROWS(DeviceError, "there is no device 'tpu'", device_from_name("tpu"));
  CHECK_THROWS(MemoryError, "", Tensor::empty({int64_t{1} << 50}, DType::float32));
  CHECK_THROWS(FileError, "No such file", Model::load("/no/such/file.plm"));
  CHECK_THROWS(ValueError, "relu", activation_from_name("swish2"));
}

TEST(messages_are_put_together) {
  CHECK_THROWS(ShapeError, "a 3 [2, 6] float32[2, 6] true 0.5 none",
               fail<ShapeError>("a ", 3, " ", Shape{2, 6}, " ", Tensor::zeros({2, 6}, DType::float32), " ",
                                true, " ", 0.5, " ", Tensor()));
}
