// Layouts of weights that the CPU keeps beside, or in place of, the plain [N, K]. Products choose among them
// below dispatch, so that eager calls and programs run the same ones.
//
// Packed: inference multiplies by the same weights again and again, and packing them anew is a tenth of a
// product with 256 rows. A copy is kept until the values change. As stored: a file may hold a weight in
// several parts, or as [K, N]. To lay it out takes memory that nobody has touched, which costs more than the
// copying; so it is done when somebody looks at the values. Until then products that read a weight once for
// many rows read it where it lies.
#pragma once

#include "core/kernel_args.h"
#include "plmcore/tensor.h"

namespace plmcore {

struct StoredWeight {
  Tensors parts;            // the weight's rows, from the first to the last; none once it is laid out
  bool transposed = false;  // each of them
  int reads = 0;            // by products
};

// [N, K] of parts [n, K], or transposed [K, n], of one dtype. Takes no memory of its own before its values
// are looked at.
Tensor laid_out_later(const Tensors& parts, bool transposed);

// Whether products of this thread make packed copies (`usual`), or take those that are there and make none
// (`found`).
enum class Packing { usual, found };
Packing set_packing(Packing p);  // -> what was set before
class PackingScope {  // for its lifetime
 public:
  explicit PackingScope(Packing p) : before_(set_packing(p)) {}
  ~PackingScope() { set_packing(before_); }
  PackingScope(const PackingScope&) = delete;

 private:
  Packing before_;
};

// ---- for the CPU device ----

// How linear reads its weight in this call.
struct WeightChoice {
  StoredWeight stored;  // these parts, if there are any
  Tensor packed;        // else this copy, if it is defined; else the plain values
};
// `weight` is of float32 and comes with its storage; `rows` of x are multiplied by it. Where the plain values
// are to be read, they are there afterwards.
WeightChoice choose_layout(View& weight, int64_t rows);
void keep_layouts(Storage& storage);    // packed copies are allowed: the values change through ops alone
void forget_layouts(Storage& storage);  // the values are about to change
void* lay_out(Storage& storage);  // plain values of a block that has none yet; null where it never will

}  // namespace plmcore
