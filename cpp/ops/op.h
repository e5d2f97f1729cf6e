// OpDef and dispatch: the one way an op is called.
#pragma once

#include <initializer_list>

#include "core/fault.h"
#include "core/kernel_args.h"
#include "core/op_ids.h"
#include "plmcore/tensor.h"

namespace plmcore {

// ---- what is passed to a call ----

class AttrList : public SmallVector<Attr, 4> {
 public:
  using SmallVector::SmallVector;
};

// A list of inputs that borrows its tensors; an undefined tensor is an optional input that was not given.
class Inputs {
 public:
  struct Item {
    Item(const Tensor& t) : tensor(&t) {}
    const Tensor* tensor;
  };
  Inputs(std::initializer_list<Item> list) {
    for (const Item& i : list) items_.push_back(i.tensor);
  }
  explicit Inputs(const Tensors& list) {
    for (const Tensor& t : list) items_.push_back(&t);
  }
  size_t size() const { return items_.size(); }
  const Tensor& operator[](size_t i) const { return *items_[i]; }

 private:
  SmallVector<const Tensor*, 8> items_;
};

// ---- what an op defines ----

using Specs = SmallVector<Spec, 4>;

// The inputs as a shape rule sees them.
class InSpecs {
 public:
  InSpecs(const char* op, const Inputs& in) : op_(op) {
    for (size_t i = 0; i < in.size(); ++i) items_.push_back(in[i].defined() ? &in[i].spec() : nullptr);
  }
  size_t size() const { return items_.size(); }
  // The number of inputs, with those that may be undefined: kernels look at all of them.
  void expect(size_t n) const {
    check<ValueError>(items_.size() == n, op_, ": must have ", n, " inputs, got ", items_.size());
  }
  bool has(size_t i) const { return i < items_.size() && items_[i]; }
  const Spec& operator[](size_t i) const {
    check<ValueError>(has(i), op_, ": input ", i, " is missing");
    return *items_[i];
  }

 private:
  const char* op_;
  SmallVector<const Spec*, 8> items_;
};

// The attributes as a shape rule sees them. A missing key, another kind, or a code that an enumeration does
// not have is a ValueError. A kernel looks its attributes up without checks, so its shape rule asks here for
// each of them first.
class Attrs {
 public:
  Attrs(const char* op, const AttrList& list) : op_(op), list_(&list) {}
  operator const AttrList&() const { return *list_; }

  bool has(const char* key) const { return find(key) != nullptr; }
  int64_t i(const char* key) const { return at(key, Attr::kInt).i; }
  double f(const char* key) const { return at(key, Attr::kFloat).f; }
  const Shape& dims(const char* key) const { return at(key, Attr::kDims).dims; }
  Dim dim(const char* key) const;                      // a list of one size
  bool flag(const char* key) const { return code(key, 2) != 0; }
  DType dtype(const char* key) const { return static_cast<DType>(code(key, kDTypes)); }
  int64_t code(const char* key, int64_t count) const;  // of an enumeration with the numbers 0 ... count - 1

 private:
  const Attr* find(const char* key) const;
  const Attr& at(const char* key, Attr::Kind kind) const;

  const char* op_;
  const AttrList* list_;
};

// Masks have a bit for each of the first 64 inputs; a longer list (concat) is all or nothing: its last bit
// stands for the rest.
constexpr bool in_mask(uint64_t mask, size_t i) { return mask >> (i < 63 ? i : 63) & 1; }

// What a backward rule sees. Saved tensors have data; the others only shape and dtype.
struct Grad {
  const Tensors& in;
  const Tensors& out;
  const Tensors& dy;  // one per output; undefined where no gradient arrived
  Attrs attrs;
  uint64_t wants;  // bit i: input i needs a gradient

  bool want(size_t i) const { return in_mask(wants, i); }
};

using InferFn = Specs (*)(const InSpecs& in, const Attrs& attrs);
using BackwardFn = Tensors (*)(const Grad& g);  // one tensor per input, undefined where there is none
inline constexpr BackwardFn no_grad = nullptr;  // written out in the definition: there is no default

constexpr uint64_t saves() { return 0; }
template <class... I>
constexpr uint64_t saves(I... index) {
  return ((uint64_t{1} << index) | ...);
}

struct OpDef {
  const char* name;
  InferFn infer;
  BackwardFn backward;
  uint64_t save_in = 0;  // inputs whose data the backward rule reads
  uint64_t save_out = 0;  // outputs whose data the backward rule reads
  // Optional parts, set by designated initialisers.
  struct Extra {
    // Values of the fresh symbols that `infer` returned, in order of appearance; reads the inputs.
    SmallVector<int64_t, 2> (*measure)(const Tensors& in, const Attrs& attrs) = nullptr;
    // A view op: element offset of an output into input 0. It has no kernel.
    int64_t (*view)(const Spec& in, const Attrs& attrs, size_t output) = nullptr;
    // Outputs of save_out that the rule does read with these attributes; all where there is no such function.
    uint64_t (*reads_out)(const Attrs& attrs) = nullptr;
    // Saved inputs and outputs that are never rounded: statistics, logits, what is compared.
    uint64_t exact_in = 0, exact_out = 0;
    // Inputs that the kernel writes; such an op has no outputs of its own to differentiate.
    uint64_t mutates = 0;
    // Inputs that a launcher reads: they come in host memory, wherever the others are.
    uint64_t host_in = 0;
    uint32_t meets = 0;  // which errors in data it can meet: can_meet(...)
  } extra = {};
  mutable int id = -1;  // its place in ops.def, set by the registry
};

// ---- calling ----

// `device` is used by ops whose place no input tells.
Tensors dispatch(const OpDef& op, const Inputs& in, const AttrList& attrs = {}, Device* device = nullptr);

// Every op of ops.def: its definition.
namespace ops {
#define PLM_OP(name) extern const OpDef name;
#define PLM_OP_VIEW(name) PLM_OP(name)
#include "ops/ops.def"
#undef PLM_OP
#undef PLM_OP_VIEW
}  // namespace ops

const OpDef* const* all_ops();  // kCount definitions in the order of ops.def
int op_id(const OpDef& op);
const OpDef* find_op(std::string_view name);  // nullptr when there is none

}  // namespace plmcore
