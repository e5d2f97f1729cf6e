#ifdef PLM_TEST_HOOKS

#include "cpu/perturb.h"

#include <algorithm>
#include <cmath>

#include "ops/op.h"

namespace plmcore {

namespace {

enum class Mutation { scale, lane, last, row };
constexpr const char* kMutations[] = {"scale", "lane", "last", "row"};
constexpr int64_t kVector = 8, kLane = 5;

int g_id = -1;  // these are set between calls, by the thread that makes them
Mutation g_mutation = Mutation::scale;
int g_written = 0;
double g_part = 0;
Perturbed g_found;

template <class T> T moved(T v, bool keep_zero) {
  const double part = std::max(g_part, sizeof(T) == 4 ? 0x1p-10 : 0);
  if (v == 0) return keep_zero ? v : T(part);
  return std::isfinite(v) ? T(v + v * part) : v;
}
// Units in the last place, of which a binade has 2^digits.
uint16_t moved_bits(uint16_t v, int digits, bool keep_zero) {
  const uint16_t infinite = 0x7fff >> digits << digits, size = v & 0x7fff;
  if (size >= infinite || (size == 0 && keep_zero)) return v;
  return static_cast<uint16_t>(v + std::max(1.0, std::ldexp(g_part, digits)));
}

template <class T, class Move> bool change(const View& view, int64_t i, Move move) {
  T& v = view.as<T>()[i];
  const T before = v;
  v = move(before);
  return std::memcmp(&before, &v, sizeof(T)) != 0;
}

bool change(const View& view, int64_t i, bool keep_zero) {
  const auto number = [&](auto v) { return moved(v, keep_zero); };
  const auto next = [](auto v) { return static_cast<decltype(v)>(v + 1); };
  switch (view.dtype) {
    case DType::float64: return change<double>(view, i, number);
    case DType::float32: return change<float>(view, i, number);
    case DType::bfloat16:
      return change<uint16_t>(view, i, [&](uint16_t v) { return moved_bits(v, 7, keep_zero); });
    case DType::float16:
      return change<uint16_t>(view, i, [&](uint16_t v) { return moved_bits(v, 10, keep_zero); });
    case DType::int64: return change<uint64_t>(view, i, next);
    case DType::int32: return change<uint32_t>(view, i, next);
    case DType::int8:
    case DType::uint8: return change<uint8_t>(view, i, next);
    case DType::boolean: return change<uint8_t>(view, i, [](uint8_t v) { return uint8_t(v ^ 1); });
  }
  return false;
}

void spoil(const View& view) {
  int64_t begin = 0, end = view.numel, step = 1;
  const int64_t row = view.rows() / 2;
  switch (g_mutation) {
    case Mutation::scale: break;
    case Mutation::lane: begin = kLane, step = kVector; break;
    case Mutation::last: begin = std::max<int64_t>(end - 1, 0); break;
    case Mutation::row: begin = row * view.last(); end = row ? begin + view.last() : begin;
  }
  for (int64_t i = begin; i < end; i += step)
    g_found.values += change(view, i, g_mutation == Mutation::scale);
}

}  // namespace

void perturb_kernel(std::string_view op, std::string_view mutation, int written, double part) {
  const OpDef* def = op.empty() ? nullptr : find_op(op);
  check<ValueError>(op.empty() || def, "there is no op '", op, "'");
  const auto* found = std::find(std::begin(kMutations), std::end(kMutations), mutation);
  check<ValueError>(found != std::end(kMutations), "there is no mutation '", mutation, "'");
  g_id = def ? op_id(*def) : -1;
  g_mutation = static_cast<Mutation>(found - std::begin(kMutations));
  g_written = written;
  g_part = part;
  g_found = {};
}

Perturbed perturbed() { return g_found; }

void perturb(int id, const KernelArgs& args) {
  if (id != g_id) return;
  int count = 0;
  const auto visit = [&](const View& view) {
    if (count++ == g_written && view.data) spoil(view);
  };
  for (int i = 0; i < args.n_out; ++i) visit(args.out[i]);
  for (int i = 0; i < args.n_in; ++i)
    if (in_mask(all_ops()[id]->extra.mutates, static_cast<size_t>(i))) visit(args.in[i]);
  g_found.tensors = std::max(g_found.tensors, count);
}

}  // namespace plmcore

#endif
