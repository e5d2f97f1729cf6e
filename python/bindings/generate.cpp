#include "plmcore/generate.h"

#include "bindings/bindings.h"

namespace plmcore::bindings {

namespace {
using Ids = std::span<const int64_t>;

nb::list to_list(Ids ids) {
  nb::list l;
  for (int64_t id : ids) l.append(id);
  return l;
}

void accept(Search& s, const Tensor& logits) {
  if (s.options().allowed || s.options().stop) return s.accept(logits);  // they are Python's
  const ReleaseGil nogil;
  s.accept(logits);
}
}  // namespace

void bind_generate(nb::module_& m) {
  nb::class_<Decoder>(m, "Decoder", "Runs the entry points of an exported model for a search.")
      .def(
          "__init__",
          [](Decoder* self, const Model& model, std::vector<std::vector<int64_t>> prompts,
             std::vector<std::vector<int64_t>> sources) {
            new (self) Decoder(model, std::move(prompts), std::move(sources));
          },
          "model"_a, "prompts"_a, "sources"_a = nb::list(), nb::keep_alive<1, 2>())
      .def(
          "__call__",
          [](Decoder& d, const Search& s) {
            const ReleaseGil nogil;
            return d(s.live(), s.parents(), s.tokens());
          },
          "search"_a, "The logits that a search asks for.");
  nb::enum_<EarlyStopping>(m, "EarlyStopping")
      .value("no", EarlyStopping::no)
      .value("yes", EarlyStopping::yes)
      .value("never", EarlyStopping::never);
  nb::class_<SearchOptions>(m, "SearchOptions", "The rules of a search; docs/generation.md.")
      .def(nb::init<>())
      .def_rw("max_new_tokens", &SearchOptions::max_new_tokens)
      .def_rw("min_new_tokens", &SearchOptions::min_new_tokens)
      .def_rw("eos", &SearchOptions::eos)
      .def_rw("returns", &SearchOptions::returns)
      .def_rw("beams", &SearchOptions::beams)
      .def_rw("groups", &SearchOptions::groups)
      .def_rw("diversity", &SearchOptions::diversity)
      .def_rw("length_penalty", &SearchOptions::length_penalty)
      .def_rw("gnmt", &SearchOptions::gnmt)
      .def_rw("early_stopping", &SearchOptions::early_stopping)
      .def_rw("sample", &SearchOptions::sample)
      .def_rw("temperature", &SearchOptions::temperature)
      .def_rw("top_p", &SearchOptions::top_p)
      .def_rw("typical_p", &SearchOptions::typical_p)
      .def_rw("top_k", &SearchOptions::top_k)
      .def_rw("seeds", &SearchOptions::seeds)
      .def_rw("repetition_penalty", &SearchOptions::repetition_penalty)
      .def_rw("no_repeat_ngram", &SearchOptions::no_repeat_ngram)
      .def_rw("bad_words", &SearchOptions::bad_words)
      .def_rw("forced_first", &SearchOptions::forced_first)
      .def_rw("forced_last", &SearchOptions::forced_last)
      .def_rw("token_scores", &SearchOptions::token_scores)
      .def_rw("trace", &SearchOptions::trace)
      .def(
          "set_allowed",
          [](SearchOptions& o, nb::callable f) {
            o.allowed = [f](int64_t prompt, Ids ids) {
              return nb::cast<std::vector<int64_t>>(f(prompt, to_list(ids)));
            };
          },
          "allowed"_a, "allowed(prompt, ids) -> the tokens that may follow.")
      .def(
          "set_stop",
          [](SearchOptions& o, nb::callable f) {
            o.stop = [f](int64_t prompt, Ids ids) { return nb::cast<bool>(f(prompt, to_list(ids))); };
          },
          "stop"_a, "stop(prompt, ids) -> whether the sequence is complete.");
  nb::class_<Completion>(m, "Completion", "Tokens after a prompt, with their score.")
      .def_ro("tokens", &Completion::tokens)
      .def_ro("score", &Completion::score)
      .def_ro("token_scores", &Completion::token_scores);
  nb::enum_<Fate>(m, "Fate")
      .value("kept", Fate::kept)
      .value("dropped", Fate::dropped)
      .value("finished", Fate::finished);
  nb::class_<Considered>(m, "Considered", "A continuation that a step of a search looked at.")
      .def_ro("group", &Considered::group)
      .def_ro("parent", &Considered::parent)
      .def_ro("token", &Considered::token)
      .def_ro("score", &Considered::score)
      .def_ro("fate", &Considered::fate)
      .def_ro("final_score", &Considered::final_score);
  nb::class_<Search>(m, "Search", "Says which tokens a model runs next, and takes the logits.")
      .def(nb::init<std::vector<std::vector<int64_t>>, SearchOptions>(), "prompts"_a, "options"_a)
      .def_prop_ro("done", &Search::done)
      .def_prop_ro("steps", &Search::steps)
      .def_prop_ro("live", [](const Search& s) { return from_tensor(s.live()); })
      .def_prop_ro("parents", [](const Search& s) { return from_tensor(s.parents()); })
      .def_prop_ro("tokens", [](const Search& s) { return from_tensor(s.tokens()); })
      .def_prop_ro("prompts", &Search::prompts)
      .def("accept", &accept, "logits"_a,
           "The logits of the run that was asked for, [L, n, V] or [L * n, V].")
      .def("result", &Search::result, "prompt"_a, "The sequences of a prompt, the best first.")
      .def("trace", &Search::trace, "prompt"_a, "What each step looked at, with the option trace.");
}

}  // namespace plmcore::bindings
