#include "plmcore/session.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/device.h"
#include "embed/pooling.h"
#include "plmcore/threads.h"

namespace plmcore {

namespace {

// Logits of one answer as probabilities, under the names of the card.
Classified described(const Card& card, const float* logits, int64_t n) {
  Classified found;
  if (card.problem == "regression" || n == 1) {
    found.value = logits[0];
    return found;
  }
  const bool several = card.problem == "multi_label_classification";
  const double top = *std::max_element(logits, logits + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double x = logits[i];
    found.probabilities.push_back(several ? 1 / (1 + std::exp(-x)) : std::exp(x - top));
    sum += found.probabilities.back();
  }
  if (!several)
    for (double& p : found.probabilities) p /= sum;
  found.index = std::ranges::max_element(found.probabilities) - found.probabilities.begin();
  const auto at = static_cast<size_t>(found.index);
  found.probability = found.probabilities[at];
  found.label = at < card.labels.size() ? card.labels[at] : "LABEL_" + std::to_string(at);
  return found;
}

Tensor float_on_host(const Tensor& t) { return t.to(cpu()).to(DType::float32); }

const Tensor& named(const Session::Named& found, const char* name, std::string_view entry) {
  const auto it = found.find(name);
  check<ValueError>(it != found.end(), "the entry point '", entry, "' gives no '", name, "'");
  return it->second;
}

// How many new tokens at most: those that are asked for, or as many as there are positions. The last one
// needs none: it is not run.
int64_t new_tokens(const Options& o, int64_t prompt, int64_t positions) {
  const int64_t room = positions > 0 ? positions - prompt + 1 : INT64_MAX;
  check<ValueError>(room >= 1, "the prompt has ", prompt, " tokens, and the model ", positions, " positions");
  if (o.max_new_tokens == 0 && o.max_length == 0) return std::min<int64_t>(20, room);
  const int64_t wanted = o.max_new_tokens ? o.max_new_tokens : o.max_length - prompt;
  check<ValueError>(wanted >= 1, o.max_new_tokens ? "max_new_tokens" : "max_length", " = ",
                    o.max_new_tokens ? o.max_new_tokens : o.max_length, ": the prompt has ", prompt,
                    " tokens already");
  check<ValueError>(wanted <= room, prompt, " tokens and ", wanted, " new ones are more than the ", positions,
                    " positions of the model; at most ", room, " new ones fit");
  return wanted;
}

}  // namespace

// Takes the session for a call, with its share of the threads.
class Session::Use {
 public:
  explicit Use(Session& session) : session_(session) {
    check<BusyError>(!session.busy_.exchange(true, std::memory_order_acquire),
                     "this session is in use by another thread; make one session for each thread");
    if (session.threads_ > 0) limit_.emplace(session.threads_);
  }
  ~Use() { session_.busy_.store(false, std::memory_order_release); }
  Use(const Use&) = delete;

 private:
  Session& session_;
  const NoGrad off_;
  std::optional<WorkerLimit> limit_;
};

Session::Session(const Model& model, int threads) : model_(&model), threads_(threads) {
  check<ValueError>(threads >= 0, "threads must be at least 0, got ", threads);
}

void Session::check_ids(const char* what, size_t row, const std::vector<int64_t>& ids) const {
  const int64_t V = model_->card().vocabulary;
  for (int64_t id : ids)
    check<IndexError>(id >= 0 && (V == 0 || id < V), what, " ", row, ": the id ", id,
                      " is not in the vocabulary of ", V);
}

Session::Named Session::outputs(std::string_view entry, const Named& inputs) {
  const Program& program = model_->program(entry);
  Tensors given;
  for (const auto& [name, spec] : program.inputs()) {
    const auto it = inputs.find(name);
    check<ValueError>(it != inputs.end(), "the input '", name, "' of the entry point '", entry,
                      "' is missing");
    given.push_back(it->second.to(program.device()));
  }
  const Tensors found = program.run(given);
  Named result;
  for (size_t k = 0; k < found.size(); ++k) result[program.outputs()[k].name] = found[k];
  return result;
}

Session::Named Session::run(std::string_view entry, const Named& inputs) {
  const Use use(*this);
  const Program& program = model_->program(entry);
  for (const auto& [name, tensor] : inputs) {
    const auto is = [&](const auto& input) { return input.name == name; };
    check<ValueError>(std::ranges::any_of(program.inputs(), is), "the entry point '", entry,
                      "' has no input '", name, "'");
    check<ValueError>(tensor.defined(), "the input '", name, "' of the entry point '", entry, "' is missing");
  }
  return outputs(entry, inputs);
}

Session::Named Session::padded(const std::vector<Row>& rows) const {
  check<ValueError>(!rows.empty(), "there are no rows");
  const Padding& how = model_->card().padding;
  size_t longest = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    check<ValueError>(!rows[i].ids.empty(), "row ", i, " is empty");
    check<ValueError>(rows[i].types.empty() || rows[i].types.size() == rows[i].ids.size(), "row ", i, " has ",
                      rows[i].ids.size(), " ids and ", rows[i].types.size(), " types");
    check_ids("row", i, rows[i].ids);
    longest = std::max(longest, rows[i].ids.size());
  }
  const int64_t most = model_->card().longest;
  check<ValueError>(most == 0 || static_cast<int64_t>(longest) <= most, "a row has ", longest,
                    " tokens, and the model ", most, " positions; cut it");
  const Shape shape = {static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)};
  const Tensor ids = Tensor::empty(shape, DType::int64), mask = Tensor::zeros(shape, DType::int64),
               types = Tensor::empty(shape, DType::int64);
  std::fill_n(ids.as<int64_t>(), ids.numel(), how.id);
  std::fill_n(types.as<int64_t>(), types.numel(), how.type);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t n = rows[i].ids.size(), at = i * longest + (how.left ? longest - n : 0);
    std::ranges::copy(rows[i].ids, ids.as<int64_t>() + at);
    std::fill_n(mask.as<int64_t>() + at, n, 1);
    if (rows[i].types.empty()) std::fill_n(types.as<int64_t>() + at, n, 0);
    else std::ranges::copy(rows[i].types, types.as<int64_t>() + at);
  }
  return {{"input_ids", ids}, {"attention_mask", mask}, {"token_type_ids", types}};
}

Session::Named Session::forward(std::string_view entry, const std::vector<Row>& rows) {
  const Use use(*this);
  return outputs(entry, padded(rows));
}

Tensor Session::encode(const std::vector<Row>& rows) {
  const Use use(*this);
  const Named inputs = padded(rows);
  const Tensor states = float_on_host(named(outputs("encode", inputs), "last_hidden_state", "encode"));
  return pooled(model_->card().pooling, states, inputs.at("attention_mask"));
}

std::vector<Classified> Session::classify(const std::vector<Row>& rows) {
  const Use use(*this);
  const Tensor logits = float_on_host(named(outputs("classify", padded(rows)), "logits", "classify"));
  const int64_t L = logits.size(1).value();
  std::vector<Classified> found;
  for (size_t i = 0; i < rows.size(); ++i)
    found.push_back(described(model_->card(), logits.as<float>() + static_cast<int64_t>(i) * L, L));
  return found;
}

std::vector<std::vector<Classified>> Session::tag(const std::vector<Row>& rows) {
  const Use use(*this);
  const Tensor logits = float_on_host(named(outputs("tag", padded(rows)), "logits", "tag"));
  const int64_t T = logits.size(1).value(), L = logits.size(2).value();
  std::vector<std::vector<Classified>> found(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto n = static_cast<int64_t>(rows[i].ids.size());
    const int64_t begin = static_cast<int64_t>(i) * T + (model_->card().padding.left ? T - n : 0);
    for (int64_t t = 0; t < n; ++t)
      found[i].push_back(described(model_->card(), logits.as<float>() + (begin + t) * L, L));
  }
  return found;
}

std::vector<std::vector<Span>> Session::answer(const std::vector<Row>& rows, const std::vector<int64_t>& from,
                                               int64_t best, int64_t longest) {
  const Use use(*this);
  check<ValueError>(best >= 1 && longest >= 1, "best and longest must be at least 1, got ", best, " and ",
                    longest);
  check<ValueError>(from.empty() || from.size() == rows.size(), "there are ", rows.size(), " rows and ",
                    from.size(), " first tokens");
  const Named logits = outputs("answer", padded(rows));
  const Tensor starts = float_on_host(named(logits, "start_logits", "answer")),
               ends = float_on_host(named(logits, "end_logits", "answer"));
  const int64_t T = starts.size(1).value();
  std::vector<std::vector<Span>> found(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto n = static_cast<int64_t>(rows[i].ids.size());
    const int64_t at = static_cast<int64_t>(i) * T + (model_->card().padding.left ? T - n : 0);
    const float *start = starts.as<float>() + at, *end = ends.as<float>() + at;
    std::vector<Span> spans;
    for (int64_t a = from.empty() ? 0 : std::max<int64_t>(from[i], 0); a < n; ++a)
      for (int64_t b = a; b < std::min(n, a + longest); ++b)
        spans.push_back({a, b, static_cast<double>(start[a]) + end[b]});
    const auto kept = std::min(spans.size(), static_cast<size_t>(best));
    std::ranges::partial_sort(spans, spans.begin() + static_cast<int64_t>(kept), std::ranges::greater{},
                              &Span::score);
    spans.resize(kept);
    found[i] = std::move(spans);
  }
  return found;
}

std::vector<std::vector<Completion>> Session::generate(const std::vector<std::vector<int64_t>>& prompts,
                                                       Options options, const Stream& stream,
                                                       std::vector<std::vector<int64_t>> begun) {
  const Use use(*this);
  const Card& card = model_->card();
  for (size_t i = 0; i < prompts.size(); ++i) check_ids("prompt", i, prompts[i]);
  check<ValueError>(model_->has("start"), "the model '", card.family, "' with the head '", card.head,
                    "' makes no text; export one with the head causal-lm or seq2seq-lm");
  bool encodes = false;
  for (const auto& input : model_->program("start").inputs()) encodes |= input.name == "decoder_input_ids";
  if (encodes && begun.empty()) {
    const int64_t first = card.id("decoder_start") >= 0 ? card.id("decoder_start") : card.id("bos");
    check<ValueError>(first >= 0, "the decoder needs a token to start from: pass what it begins with");
    begun.assign(prompts.size(), {first});
  }
  check<ValueError>(encodes || begun.empty(), "the model has no encoder: its prompt is what it begins with");
  for (size_t i = 0; i < begun.size(); ++i) check_ids("the beginning", i, begun[i]);
  const auto& written = encodes ? begun : prompts;
  size_t longest = 0;
  for (const auto& row : written) longest = std::max(longest, row.size());
  const auto width = static_cast<int64_t>(longest);

  options.max_new_tokens = new_tokens(options, width, card.longest);
  options.min_new_tokens = std::max({options.min_new_tokens, options.min_length - width, int64_t{0}});
  if (!encodes || longest != 1) options.forced_first.clear();
  if (options.sample && options.seeds.empty())
    for (size_t i = 0; i < prompts.size(); ++i)
      options.seeds.push_back(options.seed + static_cast<int64_t>(i));
  check<ValueError>(card.vocabulary == 0 || options.beams <= card.vocabulary, "num_beams = ", options.beams,
                    " is more than the vocabulary of ", card.vocabulary);
  if (stream) {
    check<ValueError>(options.beams == 1 && options.returns == 1,
                      "stream takes one sequence for each prompt, without beams");
    options.stop = [&stream, stop = options.stop](int64_t prompt, std::span<const int64_t> ids) {
      const bool over = stop && stop(prompt, ids);
      return !stream(prompt, ids.back()) || over;
    };
  }
  Search search(written, options);
  plmcore::generate(search, encodes ? Decoder(*model_, written, prompts) : Decoder(*model_, written));
  std::vector<std::vector<Completion>> found;
  for (size_t i = 0; i < prompts.size(); ++i) found.push_back(search.result(static_cast<int64_t>(i)));
  return found;
}

}  // namespace plmcore
