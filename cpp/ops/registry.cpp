#include <string>
#include <unordered_map>

#include "ops/op.h"

namespace plmcore {

namespace {
const OpDef* const kOps[] = {
#define PLM_OP(name) &ops::name,
#define PLM_OP_VIEW(name) PLM_OP(name)
#include "ops/ops.def"
#undef PLM_OP
#undef PLM_OP_VIEW
};
[[maybe_unused]] const bool kNumbered = [] {
  for (int i = 0; i < ops::kCount; ++i) kOps[i]->id = i;
  return true;
}();
}  // namespace

const OpDef* const* all_ops() { return kOps; }
int op_id(const OpDef& op) { return op.id; }

const OpDef* find_op(std::string_view name) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string_view, const OpDef*>;
    for (const OpDef* op : kOps) map->emplace(op->name, op);
    return map;
  }();
  const auto it = by_name->find(name);
  return it == by_name->end() ? nullptr : it->second;
}

}  // namespace plmcore
