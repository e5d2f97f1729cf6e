// Trainers of word vectors over NumPy's arrays. Text goes in as bytes, ids come out as the bytes of int32.
#include <optional>

#include <nanobind/stl/pair.h>

#include "bindings/bindings.h"
#include "bindings/view.h"
#include "vectors/cooccurrences.h"
#include "vectors/glove.h"
#include "vectors/vocabulary.h"
#include "vectors/word2vec.h"

namespace plmcore::bindings {
namespace {

using vectors::Cooccurrences;
using vectors::Vocabulary;
using vectors::Word2Vec;

nb::bytes as_bytes(const std::vector<int32_t>& ids) {
  return nb::bytes(ids.data(), ids.size() * sizeof(int32_t));
}

void bind_vocabulary(nb::module_& m) {
  nb::class_<Vocabulary>(m, "Vocabulary", "Words of a text, which comes in chunks, and the text as ids.")
      .def(nb::init<bool>(), "ends"_a)
      .def(
          "count",
          [](Vocabulary& self, nb::bytes chunk) {
            const std::string_view text(chunk.c_str(), chunk.size());
            const ReleaseGil released;
            self.count(text);
          },
          "chunk"_a, nb::sig("def count(self, chunk: bytes) -> None"), "Counts the words of a chunk.")
      .def("sort", &Vocabulary::sort, "min_count"_a, "by_bytes"_a, "last"_a,
           "Keeps words that were seen min_count times, by falling count; equal ones in order of appearance "
           "or by bytes. last: the word that the text ends with counts.")
      .def(
          "encode",
          [](Vocabulary& self, nb::bytes chunk) {
            std::vector<int32_t> ids;
            const std::string_view text(chunk.c_str(), chunk.size());
            {
              const ReleaseGil released;
              self.encode(text, ids);
            }
            return as_bytes(ids);
          },
          "chunk"_a, nb::sig("def encode(self, chunk: bytes) -> bytes"),
          "The ids of the words that are known, from 1; 0 at the end of a line.")
      .def(
          "end",
          [](Vocabulary& self, bool last) {
            std::vector<int32_t> ids;
            self.end(last, ids);
            return as_bytes(ids);
          },
          "last"_a, nb::sig("def end(self, last: bool) -> bytes"),
          "Ends the text: the id of its last word, if that counts.")
      .def_prop_ro(
          "words",
          [](const Vocabulary& self) {
            nb::list words;
            for (int64_t i = 0; i < self.size(); ++i)
              words.append(nb::bytes(self.word(i).data(), self.word(i).size()));
            return words;
          },
          nb::sig("def words(self) -> list[bytes]"), "The words, as bytes.")
      .def_prop_ro(
          "counts",
          [](const Vocabulary& self) {
            std::vector<int64_t> counts;
            for (int64_t i = 0; i < self.size(); ++i) counts.push_back(self.count_of(i));
            return counts;
          },
          "How often each word was seen.");
}

void bind_word2vec(nb::module_& m) {
  nb::class_<Word2Vec>(m, "Word2Vec", "The trainer of word2vec over a file of int32 ids.")
      .def(
          "__init__",
          [](Word2Vec* self, const FilePath& ids, const std::vector<int64_t>& counts, int64_t stride,
             bool cbow, int64_t window, int64_t negative, bool hierarchical, float sample, float rate,
             int64_t epochs, int64_t threads, uint64_t seed) {
            new (self) Word2Vec(ids, counts, stride,
                                {cbow, window, negative, hierarchical, sample, rate, epochs, threads, seed});
          },
          "ids"_a, "counts"_a, "stride"_a, "cbow"_a, "window"_a, "negative"_a, "hierarchical"_a, "sample"_a,
          "rate"_a, "epochs"_a, "threads"_a, "seed"_a)
      .def(
          "train",
          [](Word2Vec& self, nb::handle input, nb::handle output, nb::handle inner, int64_t until) {
            const View<float> rows(input, "train: input", 2);
            std::optional<View<float>> others, nodes;
            if (!output.is_none())
              others.emplace(output, "train: output", 2).of("train: output", {rows.size(0), rows.size(1)});
            if (!inner.is_none())
              nodes.emplace(inner, "train: inner", 2).of("train: inner", {rows.size(0), rows.size(1)});
            self.check_rows(rows.size(0), rows.size(1), others.has_value(), nodes.has_value());
            const ReleaseGil released;
            const Word2Vec::Sums sums = self.train(rows.data(), others ? others->data() : nullptr,
                                                   nodes ? nodes->data() : nullptr, until);
            return std::pair(sums.loss, sums.pairs);
          },
          "input"_a, "output"_a.none(), "inner"_a.none(), "until"_a,
          nb::sig("def train(self, input: numpy.ndarray, output: numpy.ndarray | None, inner: numpy.ndarray "
                  "| None, until: int) -> tuple[float, int]"),
          "Trains each thread to `until` of its words, at the end of a sentence; the sums of losses and "
          "pairs.")
      .def_prop_rw("state", &Word2Vec::state, &Word2Vec::set_state, "What a checkpoint keeps.")
      .def_prop_ro("words", &Word2Vec::words, "Words of an epoch.")
      .def_prop_ro("done", &Word2Vec::done, "Words that the threads have told of.")
      .def_prop_ro("finished", &Word2Vec::finished, "Whether all epochs are done.")
      .def_prop_ro("rate", &Word2Vec::rate, "The learning rate.");
  m.def(
      "first_vectors",
      [](nb::handle input, int64_t dim, uint64_t seed) {
        const View<float> rows(input, "first_vectors: input", 2);
        check(dim >= 1 && dim <= rows.size(1), "first_vectors: dim must be 1 to ", rows.size(1), ", got ",
              dim);
        vectors::first_vectors(rows.data(), rows.size(0), dim, rows.size(1), seed);
      },
      "input"_a, "dim"_a, "seed"_a,
      nb::sig("def first_vectors(input: numpy.ndarray, dim: int, seed: int) -> None"),
      "What word2vec begins with.  input float32 [V, stride]");
}

}  // namespace

void bind_vectors(nb::module_& m) {
  bind_vocabulary(m);
  bind_word2vec(m);
  nb::class_<Cooccurrences>(m, "Cooccurrences",
                            "Sums of 1 / distance over pairs of words, inside a limit of memory in bytes.")
      .def(
          "__init__",
          [](Cooccurrences* self, const FilePath& folder, int64_t vocabulary, int64_t window, bool symmetric,
             int64_t memory) { new (self) Cooccurrences(folder, vocabulary, window, symmetric, memory); },
          "folder"_a, "vocabulary"_a, "window"_a, "symmetric"_a, "memory"_a)
      .def(
          "add",
          [](Cooccurrences& self, nb::handle ids) {
            const View<const int32_t> text(ids, "add: ids", 1);
            const ReleaseGil released;
            self.add(text.data(), text.size(0));
          },
          "ids"_a, nb::sig("def add(self, ids: numpy.ndarray) -> None"),
          "Counts the pairs of int32 ids, 0 at the end of a line.")
      .def(
          "write",
          [](Cooccurrences& self, const FilePath& path) {
            const ReleaseGil released;
            return self.write(path);
          },
          "path"_a, "Writes the records by row and column; their number.")
      .def_prop_ro("runs", &Cooccurrences::runs, "Files that were written because the memory was full.");
  m.def(
      "glove",
      [](nb::handle rows, int64_t width, nb::handle records, double x_max, double alpha, double rate,
         int64_t threads) {
        const View<double> matrix(rows, "glove: rows", 3);
        const View<const int64_t> counts(records, "glove: records", 2);
        counts.of("glove: records", {counts.size(0), 2});
        const vectors::GloveModel model = {matrix.data(), matrix.size(1), width, x_max, alpha, rate};
        check<ValueError>(width > 0 && width % 8 == 0 && threads >= 1 && threads <= 256,
                          "glove: the width must be a multiple of 8, threads 1 to 256");
        matrix.of("glove: rows", {2, matrix.size(1), model.stride()});
        const ReleaseGil released;
        return vectors::glove(model, reinterpret_cast<const vectors::Record*>(counts.data()), counts.size(0),
                              threads);
      },
      "rows"_a, "width"_a, "records"_a, "x_max"_a, "alpha"_a, "rate"_a, "threads"_a,
      nb::sig("def glove(rows: numpy.ndarray, width: int, records: numpy.ndarray, x_max: float, alpha: "
              "float, rate: float, threads: int) -> float"),
      "Trains on records, int64 [n, 2] of 16 bytes each; the sum of the costs.  rows float64 "
      "[2, V, 2 width + 8]: vector, its accumulators, bias, its accumulator");
}

}  // namespace plmcore::bindings
