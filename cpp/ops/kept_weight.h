// Packed copies of weights, kept between calls. Inference multiplies by the same weights again and again, and packing them anew is a tenth
// of a product with 256 rows. A copy lives in the storage of its weight until the values there change.
#pragma once

#include "plmcore/tensor.h"

namespace plmcore {

struct PackedCopy {
  Tensor tensor;
  Shape shape;  // of the weight
  size_t from;  // its offset into the storage
};

// Whether plain products run on the engine of packed ones, our own, so that the layout of a weight changes no bit of a result.
bool own_products();
// Allows a copy of this weight. Its values must change through ops, or with forget_packed; memory that was lent out keeps none meanwhile.
void keep_packed(const Tensor& weight);
// What pack_weight makes of the weight; undefined where none is kept. It is made on first use or, where a use gains little (`short_use`),
// after some: what runs once does not wait for it.
Tensor kept_packed(const Tensor& weight, bool short_use);
// Whether products of this thread make packed copies (`usual`), or take those that are there and make none (`found`).
enum class Packing { usual, found };
Packing set_packing(Packing p);  // -> what was set before
void forget_packed(Storage& storage);  // its values are about to change

// Views through which others may write: counted, so that nothing is kept while there is one.
void lend(Storage& storage);
void take_back(Storage& storage);

}  // namespace plmcore
