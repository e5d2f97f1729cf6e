#include "plmcore/session.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>

#include "bindings/bindings.h"
#include "plmcore/text.h"

namespace plmcore::bindings {

namespace {

using Lists = std::vector<std::vector<int64_t>>;

std::vector<Row> rows_of(const Lists& ids, const Lists& types) {
  check<ValueError>(types.empty() || types.size() == ids.size(), "there are ", ids.size(),
                    " rows of ids and ", types.size(), " of types");
  std::vector<Row> rows;
  for (size_t i = 0; i < ids.size(); ++i)
    rows.push_back({ids[i], types.empty() ? std::vector<int64_t>() : types[i]});
  return rows;
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> pair_of(const Row& row) { return {row.ids, row.types}; }

// Python's function, called from a thread that may not hold its lock.
Stream stream_of(nb::object told) {
  if (told.is_none()) return {};
  return [told](int64_t prompt, int64_t token) {
    const nb::gil_scoped_acquire gil;
    return nb::cast<bool>(told(prompt, token));
  };
}

}  // namespace

void bind_session(nb::module_& m) {
  nb::class_<Options, SearchOptions>(m, "Options", "The rules of Session.generate: a search's, and lengths.")
      .def(nb::init<>())
      .def_rw("max_length", &Options::max_length)
      .def_rw("min_length", &Options::min_length)
      .def_rw("seed", &Options::seed);
  nb::class_<Card>(m, "Card", "What a model file says of its model; docs/program-format.md.")
      .def_ro("family", &Card::family)
      .def_ro("head", &Card::head)
      .def_ro("main", &Card::main)
      .def_ro("vocabulary", &Card::vocabulary)
      .def_ro("longest", &Card::longest)
      .def_ro("ids", &Card::ids)
      .def_ro("labels", &Card::labels)
      .def_ro("problem", &Card::problem)
      .def_prop_ro(
          "pooled_length", [](const Card& c) { return c.pooling.max_length; },
          "The most tokens of a text that is pooled; 0: any number.")
      .def_prop_ro(
          "tokenizer", [](const Card& c) { return c.text.kind; }, "The kind of the tokenizer; empty: none.")
      .def_prop_ro(
          "generation", [](const Card& c) { return c.generation; }, "A copy of the defaults, to change.");
  nb::class_<Classified>(m, "Classified", "A label with its probabilities, or the value of a regression.")
      .def_ro("label", &Classified::label)
      .def_ro("probability", &Classified::probability)
      .def_ro("probabilities", &Classified::probabilities)
      .def_ro("value", &Classified::value);
  nb::class_<Span>(m, "Span", "Tokens from begin to end, both included.")
      .def_ro("begin", &Span::begin)
      .def_ro("end", &Span::end)
      .def_ro("score", &Span::score);
  nb::class_<Session>(m, "Session",
                      "One user of a model file. A second thread that calls it gets a BusyError.")
      .def(
          "__init__",
          [](Session* self, const Model& model, int threads) { new (self) Session(model, threads); },
          "model"_a, "threads"_a = 0, nb::keep_alive<1, 2>())
      .def("run", &Session::run, "entry"_a, "inputs"_a, NoGil(), "Runs an entry point; tensors by name.")
      .def(
          "encode",
          [](Session& s, const Lists& ids, const Lists& types) { return s.encode(rows_of(ids, types)); },
          "ids"_a, "types"_a = nb::list(), NoGil(), "A vector for each row, pooled as the file says.")
      .def(
          "classify",
          [](Session& s, const Lists& ids, const Lists& types) { return s.classify(rows_of(ids, types)); },
          "ids"_a, "types"_a = nb::list(), NoGil(), "A label for each row.")
      .def(
          "tag", [](Session& s, const Lists& ids, const Lists& types) { return s.tag(rows_of(ids, types)); },
          "ids"_a, "types"_a = nb::list(), NoGil(), "A label for each token of each row.")
      .def(
          "answer",
          [](Session& s, const Lists& ids, const Lists& types, const std::vector<int64_t>& first,
             int64_t best, int64_t longest) { return s.answer(rows_of(ids, types), first, best, longest); },
          "ids"_a, "types"_a = nb::list(), "first"_a = nb::list(), "best"_a = 1, "longest"_a = 30, NoGil(),
          "The best spans of each row.")
      .def(
          "generate",
          [](Session& s, const Lists& prompts, const Options& options, nb::object stream,
             const Lists& begun) {
            const Stream told = stream_of(std::move(stream));
            const ReleaseGil nogil;
            return s.generate(prompts, options, told, begun);
          },
          "prompts"_a, "options"_a, "stream"_a = nb::none(), "begun"_a = nb::list(),
          "The sequences that follow each prompt.");
  nb::class_<Text>(m, "Text", "The tokenizer of a model file.")
      .def(
          "__init__", [](Text* self, const Model& model) { new (self) Text(model); }, "model"_a,
          nb::keep_alive<1, 2>())
      .def_static("serves", &Text::serves, "model"_a, "Whether its kind is served.")
      .def(
          "encode",
          [](const Text& t, const std::string& text, int64_t most) { return pair_of(t.encode(text, most)); },
          "text"_a, "max_length"_a = 0, "(ids, types) with the special tokens.")
      .def(
          "encode_pair",
          [](const Text& t, const std::string& text, const std::string& pair, int64_t most) {
            return pair_of(t.encode(text, pair, most));
          },
          "text"_a, "pair"_a, "max_length"_a = 0, "(ids, types) of two texts.")
      .def(
          "ids", [](const Text& t, const std::string& text) { return t.ids(text); }, "text"_a,
          "Without special tokens.")
      .def(
          "decode",
          [](const Text& t, const std::vector<int64_t>& ids, bool skip) { return t.decode(ids, skip); },
          "ids"_a, "skip_special"_a = true)
      .def("token", &Text::token, "id"_a)
      .def_prop_ro("size", &Text::size);
}

}  // namespace plmcore::bindings
