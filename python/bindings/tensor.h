// What the files that make up plm.Tensor share: tensor.cpp (the class), operators.cpp, index.cpp, array.cpp,
// dlpack.cpp.
#pragma once

#include "bindings/bindings.h"

namespace plmcore::bindings {

using TensorClass = nb::class_<Tensor>;

void bind_operators(TensorClass& c);
void bind_index(TensorClass& c);
void bind_methods(TensorClass& c);
void bind_array(nb::module_& m, TensorClass& c);
void bind_dlpack(nb::module_& m, TensorClass& c);

// ---- array.cpp ----
// The objects of NumPy that are in use, looked up once.
struct Numpy {
  nb::object ndarray, generic, asarray, ascontiguousarray, dtype, array2string;
};
const Numpy& numpy();
bool is_array(nb::handle h);                                  // a NumPy array or scalar
Tensor copy_array(nb::handle h,
                  nb::handle dtype);  // in new memory, on the CPU; dtype: none keeps what NumPy says
nb::object to_numpy(const Tensor& t);  // shares memory on the CPU
nb::object item(const Tensor& t);  // of a tensor with one element: float, int or bool

// ---- operators.cpp ----
// Two operands in one dtype: a number or an array takes the tensor's, integers meet floats in the float's.
void promote(Tensor& a, Tensor& b);

}  // namespace plmcore::bindings
