// plmcore.h: the C++ API behind handles. No exception leaves a function.
#include "plmcore/plmcore.h"

#include <cstring>
#include <memory>

#include "core/device.h"
#include "plmcore/session.h"
#include "plmcore/text.h"
#include "plmcore/threads.h"

using namespace plmcore;

struct plm_model {
  Model model;
};
struct plm_session {
  Session session;
};
struct plm_text {
  Text text;
};
struct plm_rows {
  std::vector<Row> rows;
};
struct plm_outputs {
  std::vector<std::pair<std::string, Tensor>> outputs;
};
struct plm_labels {
  std::vector<Classified> rows;
};
struct plm_generated {
  std::vector<std::vector<Completion>> prompts;
};
struct plm_string {
  std::string text;
};

namespace {

static_assert(static_cast<int>(ErrorCode::other) == PLM_OTHER &&
              static_cast<int>(ErrorCode::busy) == PLM_BUSY &&
              static_cast<int>(ErrorCode::format) == PLM_FORMAT);
static_assert(static_cast<int>(DType::boolean) == PLM_BOOL && kDTypes == PLM_BOOL + 1);

thread_local std::string t_error;

plm_code failed(plm_code code, const char* text) noexcept {
  try {
    t_error = text;
  } catch (...) { t_error.clear(); }
  return code;
}

// f(), with whatever it throws as a code.
template <class F>
plm_code guarded(F f) noexcept {
  try {
    f();
    return PLM_OK;
  } catch (const std::exception& e) {
    return failed(static_cast<plm_code>(code_of(e)), e.what());
  } catch (...) { return failed(PLM_OTHER, "an error of unknown kind"); }
}

template <class... Pointers>
void given(const char* function, const Pointers*... pointers) {
  check<ValueError>((... && (pointers != nullptr)), function, ": an argument is NULL");
}

std::vector<std::vector<int64_t>> ids_of(const plm_rows& rows) {
  std::vector<std::vector<int64_t>> found;
  for (const Row& row : rows.rows) found.push_back(row.ids);
  return found;
}

Options options_of(const Card& card, const plm_options& o) {
  check<ValueError>(o.size == sizeof(plm_options), "plm_options: call plm_options_init first; its size is ",
                    o.size, ", this library's ", sizeof(plm_options));
  check<ValueError>(o.early_stopping >= 0 && o.early_stopping <= 2, "early_stopping must be 0, 1 or 2, got ",
                    o.early_stopping);
  Options found = card.generation;
  found.max_new_tokens = o.max_new_tokens;
  found.max_length = o.max_length;
  found.min_new_tokens = o.min_new_tokens;
  found.min_length = o.min_length;
  found.beams = o.num_beams;
  found.returns = o.num_return_sequences;
  found.top_k = o.top_k;
  found.no_repeat_ngram = o.no_repeat_ngram_size;
  found.seed = o.seed;
  found.temperature = o.temperature;
  found.top_p = o.top_p;
  found.typical_p = o.typical_p;
  found.length_penalty = o.length_penalty;
  found.repetition_penalty = o.repetition_penalty;
  found.sample = o.do_sample != 0;
  found.early_stopping = static_cast<EarlyStopping>(o.early_stopping);
  if (o.eos >= 0) found.eos = {o.eos};
  return found;
}

}  // namespace

extern "C" {

int plm_abi_version(void) { return PLM_ABI_VERSION; }
const char* plm_last_error(void) { return t_error.c_str(); }
plm_code plm_set_num_threads(int threads) {
  return guarded([&] { set_num_threads(threads); });
}

plm_code plm_model_load(const char* path, plm_model** model) {
  return guarded([&] {
    given("plm_model_load", path, model);
    *model = nullptr;
    *model = new plm_model{Model::load(path)};
  });
}
void plm_model_free(plm_model* model) { delete model; }
plm_code plm_model_verify(const plm_model* model) {
  return guarded([&] {
    given("plm_model_verify", model);
    model->model.verify();
  });
}
const char* plm_model_family(const plm_model* model) {
  return model ? model->model.card().family.c_str() : "";
}
const char* plm_model_head(const plm_model* model) { return model ? model->model.card().head.c_str() : ""; }
int plm_model_has(const plm_model* model, const char* entry) {
  return model && entry && model->model.has(entry);
}
int64_t plm_model_id(const plm_model* model, const char* role) {
  int64_t id = -1;
  guarded([&] {
    given("plm_model_id", model, role);
    id = model->model.card().id(role);
  });
  return id;
}

plm_code plm_rows_new(plm_rows** rows) {
  return guarded([&] {
    given("plm_rows_new", rows);
    *rows = new plm_rows;
  });
}
plm_code plm_rows_add(plm_rows* rows, const int64_t* ids, const int64_t* types, size_t n) {
  return guarded([&] {
    given("plm_rows_add", rows);
    check<ValueError>(ids || n == 0, "plm_rows_add: the ids are NULL");
    Row row{{ids, ids + n}, {}};
    if (types) row.types.assign(types, types + n);
    rows->rows.push_back(std::move(row));
  });
}
size_t plm_rows_count(const plm_rows* rows) { return rows ? rows->rows.size() : 0; }
plm_code plm_rows_get(const plm_rows* rows, size_t row, const int64_t** ids, const int64_t** types,
                      size_t* n) {
  return guarded([&] {
    given("plm_rows_get", rows);
    check<IndexError>(row < rows->rows.size(), "plm_rows_get: there are ", rows->rows.size(),
                      " rows, got number ", row);
    const Row& found = rows->rows[row];
    if (ids) *ids = found.ids.data();
    if (types) *types = found.types.empty() ? nullptr : found.types.data();
    if (n) *n = found.ids.size();
  });
}
void plm_rows_free(plm_rows* rows) { delete rows; }

plm_code plm_session_new(const plm_model* model, int threads, plm_session** session) {
  return guarded([&] {
    given("plm_session_new", model, session);
    *session = nullptr;
    *session = new plm_session{Session(model->model, threads)};
  });
}
void plm_session_free(plm_session* session) { delete session; }

plm_code plm_run(plm_session* session, const char* entry, const plm_tensor* inputs, size_t n,
                 plm_outputs** outputs) {
  return guarded([&] {
    given("plm_run", session, entry, outputs);
    check<ValueError>(inputs || n == 0, "plm_run: the inputs are NULL");
    Session::Named named;
    for (size_t i = 0; i < n; ++i) {
      const plm_tensor& t = inputs[i];
      check<ValueError>(t.name && t.data, "plm_run: input ", i, " has no name or no data");
      check<DTypeError>(t.dtype >= 0 && t.dtype <= PLM_BOOL, "plm_run: input ", i, " has the dtype ",
                        static_cast<int>(t.dtype), ", which there is not");
      check(t.rank >= 0 && t.rank <= 8, "plm_run: input ", i, " has the rank ", t.rank,
            ", at most 8 is allowed");
      Shape shape;
      for (int32_t k = 0; k < t.rank; ++k) {
        check(t.size[k] >= 0, "plm_run: input ", i, ": a size is ", t.size[k]);
        shape.push_back(Dim(t.size[k]));
      }
      named[t.name] = view(t.data, shape, static_cast<DType>(t.dtype));
    }
    auto found = std::make_unique<plm_outputs>();
    for (auto& [name, tensor] : session->session.run(entry, named))
      found->outputs.emplace_back(name, tensor.to(cpu()));
    *outputs = found.release();
  });
}
plm_code plm_encode(plm_session* session, const plm_rows* rows, plm_outputs** outputs) {
  return guarded([&] {
    given("plm_encode", session, rows, outputs);
    auto found = std::make_unique<plm_outputs>();
    found->outputs.emplace_back("vectors", session->session.encode(rows->rows));
    *outputs = found.release();
  });
}
size_t plm_outputs_count(const plm_outputs* outputs) { return outputs ? outputs->outputs.size() : 0; }
plm_code plm_outputs_get(const plm_outputs* outputs, size_t number, plm_tensor* output) {
  return guarded([&] {
    given("plm_outputs_get", outputs, output);
    check<IndexError>(number < outputs->outputs.size(), "plm_outputs_get: there are ",
                      outputs->outputs.size(), " outputs, got number ", number);
    const auto& [name, tensor] = outputs->outputs[number];
    *output = {name.c_str(), static_cast<plm_dtype>(tensor.dtype()), tensor.rank(), {}, tensor.data()};
    for (int k = 0; k < tensor.rank(); ++k) output->size[k] = tensor.shape()[k].value();
  });
}
void plm_outputs_free(plm_outputs* outputs) { delete outputs; }

plm_code plm_classify(plm_session* session, const plm_rows* rows, plm_labels** labels) {
  return guarded([&] {
    given("plm_classify", session, rows, labels);
    *labels = new plm_labels{session->session.classify(rows->rows)};
  });
}
plm_code plm_labels_get(const plm_labels* labels, size_t row, const char** label, double* probability) {
  return guarded([&] {
    given("plm_labels_get", labels);
    check<IndexError>(row < labels->rows.size(), "plm_labels_get: there are ", labels->rows.size(),
                      " rows, got number ", row);
    const Classified& found = labels->rows[row];
    if (label) *label = found.label.c_str();
    if (probability) *probability = found.label.empty() ? found.value : found.probability;
  });
}
void plm_labels_free(plm_labels* labels) { delete labels; }

plm_code plm_options_init(const plm_model* model, plm_options* options) {
  return guarded([&] {
    given("plm_options_init", model, options);
    const Options& o = model->model.card().generation;
    *options = {sizeof(plm_options),
                o.max_new_tokens,
                o.max_length,
                o.min_new_tokens,
                o.min_length,
                o.beams,
                o.returns,
                o.top_k,
                o.no_repeat_ngram,
                o.seed,
                o.temperature,
                o.top_p,
                o.typical_p,
                o.length_penalty,
                o.repetition_penalty,
                o.sample,
                static_cast<int32_t>(o.early_stopping),
                -1};
  });
}
plm_code plm_generate(plm_session* session, const plm_rows* prompts, const plm_options* options,
                      plm_stream stream, void* context, plm_generated** generated) {
  return guarded([&] {
    given("plm_generate", session, prompts, generated);
    const Card& card = session->session.model().card();
    Stream told;
    if (stream)
      told = [&](int64_t prompt, int64_t token) {
        return stream(context, static_cast<size_t>(prompt), token) != 0;
      };
    *generated = new plm_generated{session->session.generate(
        ids_of(*prompts), options ? options_of(card, *options) : card.generation, told)};
  });
}
size_t plm_generated_count(const plm_generated* generated, size_t prompt) {
  return generated && prompt < generated->prompts.size() ? generated->prompts[prompt].size() : 0;
}
plm_code plm_generated_get(const plm_generated* generated, size_t prompt, size_t sequence,
                           const int64_t** tokens, size_t* n, double* score) {
  return guarded([&] {
    given("plm_generated_get", generated);
    check<IndexError>(sequence < plm_generated_count(generated, prompt), "plm_generated_get: prompt ", prompt,
                      " has ", plm_generated_count(generated, prompt), " sequences, got number ", sequence);
    const Completion& found = generated->prompts[prompt][sequence];
    if (tokens) *tokens = found.tokens.data();
    if (n) *n = found.tokens.size();
    if (score) *score = found.score;
  });
}
void plm_generated_free(plm_generated* generated) { delete generated; }

plm_code plm_text_new(const plm_model* model, plm_text** text) {
  return guarded([&] {
    given("plm_text_new", model, text);
    *text = nullptr;
    *text = new plm_text{Text(model->model)};
  });
}
void plm_text_free(plm_text* text) { delete text; }
plm_code plm_text_encode(const plm_text* text, const char* first, const char* pair, plm_rows* rows) {
  return guarded([&] {
    given("plm_text_encode", text, first, rows);
    rows->rows.push_back(pair ? text->text.encode(first, pair) : text->text.encode(first));
  });
}
plm_code plm_text_decode(const plm_text* text, const int64_t* ids, size_t n, plm_string** string) {
  return guarded([&] {
    given("plm_text_decode", text, string);
    check<ValueError>(ids || n == 0, "plm_text_decode: the ids are NULL");
    *string = new plm_string{text->text.decode({ids, n})};
  });
}
const char* plm_string_get(const plm_string* string) { return string ? string->text.c_str() : ""; }
void plm_string_free(plm_string* string) { delete string; }

}  // extern "C"
