// The entry points start, grow, select and step of a model file: python/plmcore/program/decoding.py writes
// them.
#include <algorithm>

#include "plmcore/generate.h"
#include "plmcore/ops.h"

namespace plmcore {

namespace {

constexpr int64_t kRoom = 64;  // places that a state grows by for each sequence

// Rows of ids with zeros after their ends, and where they are.
struct Padded {
  Tensor ids, mask;

  explicit Padded(const std::vector<std::vector<int64_t>>& rows) {
    size_t longest = 0;
    for (const auto& row : rows) longest = std::max(longest, row.size());
    const auto B = static_cast<int64_t>(rows.size()), T = static_cast<int64_t>(longest);
    ids = Tensor::zeros({B, T}, DType::int64);
    mask = Tensor::zeros({B, T}, DType::int64);
    for (size_t b = 0; b < rows.size(); ++b)
      for (size_t t = 0; t < rows[b].size(); ++t) {
        ids.as<int64_t>()[b * longest + t] = rows[b][t];
        mask.as<int64_t>()[b * longest + t] = 1;
      }
  }
};

bool takes(const Program& program, std::string_view name) {
  return std::ranges::any_of(program.inputs(), [&](const auto& input) { return input.name == name; });
}

Tensor ids_of(const std::vector<int64_t>& values) {
  Tensor t = Tensor::empty({static_cast<int64_t>(values.size())}, DType::int64);
  std::ranges::copy(values, t.as<int64_t>());
  return t;
}

std::vector<std::vector<int64_t>> chosen(const std::vector<std::vector<int64_t>>& rows,
                                         const std::vector<int64_t>& places) {
  std::vector<std::vector<int64_t>> found;
  for (int64_t place : places) found.push_back(rows[static_cast<size_t>(place)]);
  return found;
}

}  // namespace

Decoder::Decoder(const Model& model, std::vector<std::vector<int64_t>> prompts,
                 std::vector<std::vector<int64_t>> sources)
    : model_(&model), prompts_(std::move(prompts)), sources_(std::move(sources)) {
  check<ValueError>(model.has("start") && model.has("step"),
                    "the file has no entry points that make text; export a model with the head causal-lm or "
                    "seq2seq-lm");
  const bool encodes = takes(model.program("start"), "decoder_input_ids");
  check<ValueError>(encodes == !sources_.empty(),
                    encodes ? "the model has an encoder: pass a source for each prompt"
                            : "the model has no encoder to read sources");
  check<ValueError>(sources_.empty() || sources_.size() == prompts_.size(), "there are ", prompts_.size(),
                    " prompts and ", sources_.size(), " sources");
}

Tensor Decoder::run(Group& group, const char* entry, const Named& given) {
  const Program& program = model_->program(entry);
  Tensors inputs;
  for (const auto& [name, spec] : program.inputs()) {
    const auto it = given.find(name);
    inputs.push_back(it != given.end() ? it->second.to(program.device()) : std::move(group.state.at(name)));
  }
  const Tensors found = program.run(inputs);
  Tensor logits;
  for (size_t k = 0; k < found.size(); ++k) {
    const std::string& name = program.outputs()[k].name;
    if (name == "logits") logits = found[k];
    else group.state[name] = found[k];
  }
  return logits;
}

Tensor Decoder::start(Group& group) {
  const Padded prompts(chosen(prompts_, group.places));
  if (sources_.empty())
    return run(group, "start", {{"input_ids", prompts.ids}, {"attention_mask", prompts.mask}});
  const Padded sources(chosen(sources_, group.places));
  return run(group, "start",
             {{"input_ids", sources.ids},
              {"attention_mask", sources.mask},
              {"decoder_input_ids", prompts.ids},
              {"decoder_attention_mask", prompts.mask}});
}

// `live` [L]: its rows that go on, undefined where all do.
Tensor Decoder::step(Group& group, const Tensor& live, const Tensor& parents, const Tensor& tokens) {
  if (live.defined()) run(group, "select", {{"live", live}});
  const int64_t n = tokens.shape()[1].value();
  if (group.room < n && model_->has("grow")) {
    run(group, "grow", {{"room", Tensor::zeros({n * kRoom}, DType::boolean)}});
    group.room += n * kRoom;
  }
  group.room -= n;
  return run(group, "step", {{"parents", parents}, {"tokens", tokens}});
}

Tensor Decoder::joined(const Tensors& logits) const {
  if (groups_.size() == 1) return logits[0];
  std::vector<std::pair<int64_t, int64_t>> order;  // (place, row)
  for (const Group& group : groups_)
    for (int64_t place : group.places) order.emplace_back(place, static_cast<int64_t>(order.size()));
  std::ranges::sort(order);
  std::vector<int64_t> rows;
  for (const auto& [place, row] : order) rows.push_back(row);
  return index_select(concat(logits, 0), ids_of(rows).to(logits[0].device()), 0);
}

Tensor Decoder::operator()(const Tensor& live, const Tensor& parents, const Tensor& tokens) {
  const NoGrad off;
  Tensors logits;
  if (!live.defined()) {
    const bool pads = takes(model_->program("start"), "attention_mask");
    std::map<size_t, Group> by_length;
    for (size_t i = 0; i < prompts_.size(); ++i)
      by_length[pads ? 0 : prompts_[i].size()].places.push_back(static_cast<int64_t>(i));
    groups_.clear();
    for (auto& [length, group] : by_length) groups_.push_back(std::move(group));
    for (Group& group : groups_) logits.push_back(start(group));
    return joined(logits);
  }
  const int64_t L = live.numel();
  for (Group& group : groups_) {
    std::vector<int64_t> now, kept;  // its rows of this run, and where they were among its own
    size_t at = 0;
    for (int64_t i = 0; i < L; ++i) {
      while (at < group.places.size() && group.places[at] < live.as<int64_t>()[i]) ++at;
      if (at == group.places.size() || group.places[at] != live.as<int64_t>()[i]) continue;
      now.push_back(i);
      kept.push_back(static_cast<int64_t>(at));
    }
    const bool all = kept.size() == group.places.size(), alone = static_cast<int64_t>(now.size()) == L;
    group.places = now;
    if (now.empty()) continue;
    const Tensor mine = alone ? Tensor() : ids_of(now);
    logits.push_back(step(group, all ? Tensor() : ids_of(kept),
                          alone ? parents : index_select(parents, mine, 0),
                          alone ? tokens : index_select(tokens, mine, 0)));
  }
  std::erase_if(groups_, [](const Group& group) { return group.places.empty(); });
  return joined(logits);
}

}  // namespace plmcore
