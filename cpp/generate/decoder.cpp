// The entry points start, grow, select and step of a model file: python/plmcore/program/decoding.py writes
// them.
#include <algorithm>

#include "plmcore/generate.h"

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

bool is_identity(const Tensor& live, int64_t count) {
  if (live.numel() != count) return false;
  for (int64_t i = 0; i < count; ++i)
    if (live.as<int64_t>()[i] != i) return false;
  return true;
}

}  // namespace

Decoder::Decoder(const Model& model, std::vector<std::vector<int64_t>> prompts,
                 std::vector<std::vector<int64_t>> sources)
    : model_(&model), prompts_(std::move(prompts)), sources_(std::move(sources)) {
  check<ValueError>(model.has("start") && model.has("step"),
                    "the file has no entry points that make text; export a model with the head causal-lm or "
                    "seq2seq-lm");
  bool encodes = false, pads = false;
  for (const auto& input : model.program("start").inputs()) {
    encodes |= input.name == "decoder_input_ids";
    pads |= input.name == "attention_mask";
  }
  check<ValueError>(encodes == !sources_.empty(),
                    encodes ? "the model has an encoder: pass a source for each prompt"
                            : "the model has no encoder to read sources");
  check<ValueError>(sources_.empty() || sources_.size() == prompts_.size(), "there are ", prompts_.size(),
                    " prompts and ", sources_.size(), " sources");
  for (const auto& prompt : prompts_)
    check<ValueError>(pads || prompt.size() == prompts_[0].size(),
                      "the model takes no padding: prompts must have one length, got ", prompts_[0].size(),
                      " and ", prompt.size());
}

Tensor Decoder::run(const char* entry, Named given) {
  const Program& program = model_->program(entry);
  Tensors inputs;
  for (const auto& [name, spec] : program.inputs()) {
    const auto it = given.find(name);
    inputs.push_back(it != given.end() ? it->second.to(program.device()) : state_.at(name));
  }
  const Tensors found = program.run(inputs);
  Tensor logits;
  for (size_t k = 0; k < found.size(); ++k) {
    const std::string& name = program.outputs()[k].name;
    if (name == "logits") logits = found[k];
    else state_[name] = found[k];
  }
  return logits;
}

Tensor Decoder::operator()(const Tensor& live, const Tensor& parents, const Tensor& tokens) {
  if (!live.defined()) {
    const Padded prompts(prompts_);
    alive_ = static_cast<int64_t>(prompts_.size());
    room_ = 0;
    if (sources_.empty()) return run("start", {{"input_ids", prompts.ids}, {"attention_mask", prompts.mask}});
    const Padded sources(sources_);
    return run("start", {{"input_ids", sources.ids},
                         {"attention_mask", sources.mask},
                         {"decoder_input_ids", prompts.ids},
                         {"decoder_attention_mask", prompts.mask}});
  }
  if (!is_identity(live, alive_)) run("select", {{"live", live}});
  alive_ = live.numel();
  const int64_t n = tokens.shape()[1].value();
  if (room_ < n && model_->has("grow")) {
    run("grow", {{"room", Tensor::zeros({n * kRoom}, DType::boolean)}});
    room_ += n * kRoom;
  }
  room_ -= n;
  return run("step", {{"parents", parents}, {"tokens", tokens}});
}

}  // namespace plmcore
