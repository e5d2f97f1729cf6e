// Documents and sentences as Python's strings, and rows of ids in NumPy's arrays, which the callers make: the
// buffer protocol tells where they lie.
#include <memory>
#include <optional>

#include "bindings/bindings.h"
#include "bindings/view.h"
#include "plmcore/error.h"
#include "text/documents.h"
#include "text/rows.h"
#include "text/sentences.h"

namespace plmcore::bindings {
namespace {

constexpr text::Letters kLetters = {
    [](char32_t c) { return Py_UNICODE_ISSPACE(c) != 0; },
    [](char32_t c) { return Py_UNICODE_ISLOWER(c) != 0; },
    [](char32_t c) { return Py_UNICODE_ISALPHA(c) != 0; },
    [](char32_t c) { return c == '_' || Py_UNICODE_ISALNUM(c); },
};

nb::list documents(nb::bytes data, bool continues) {
  const std::vector<text::Span> spans = text::documents({data.c_str(), data.size()}, continues);
  nb::list found = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(spans.size())));
  if (!found.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < spans.size(); ++i) {
    PyObject* document = PyUnicode_DecodeUTF8(
        data.c_str() + spans[i].begin, static_cast<Py_ssize_t>(spans[i].end - spans[i].begin), nullptr);
    if (!document) throw nb::python_error();
    PyList_SET_ITEM(found.ptr(), static_cast<Py_ssize_t>(i), document);
  }
  return found;
}

nb::list sentences(nb::str text) {
  const void* data = PyUnicode_DATA(text.ptr());
  const size_t n = static_cast<size_t>(PyUnicode_GET_LENGTH(text.ptr()));
  std::vector<size_t> ends;
  switch (PyUnicode_KIND(text.ptr())) {  // bytes of each character
    case 1: ends = text::sentence_ends(static_cast<const uint8_t*>(data), n, kLetters); break;
    case 2: ends = text::sentence_ends(static_cast<const uint16_t*>(data), n, kLetters); break;
    default: ends = text::sentence_ends(static_cast<const uint32_t*>(data), n, kLetters);
  }
  nb::list found = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(ends.size())));
  if (!found.is_valid()) throw nb::python_error();
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    PyObject* sentence =
        PyUnicode_Substring(text.ptr(), static_cast<Py_ssize_t>(begin), static_cast<Py_ssize_t>(ends[i]));
    if (!sentence) throw nb::python_error();
    PyList_SET_ITEM(found.ptr(), static_cast<Py_ssize_t>(i), sentence);
    begin = ends[i];
  }
  return found;
}

template <class Id>
void take(nb::handle ids, nb::handle ends, int64_t separator, nb::handle starts, nb::handle lengths,
          int64_t fill, nb::handle out) {
  const View<const Id> tokens(ids, "take: ids", 1);
  std::optional<Ints> documents;
  if (!ends.is_none()) documents.emplace(ends, "take: ends", 1);
  const View<int64_t> rows(out, "take: out", 2);
  const int64_t B = rows.size(0);
  const text::Source<Id> source = {tokens.data(), tokens.size(0), documents ? documents->data() : nullptr,
                                   documents ? documents->size(0) : 0, separator};
  text::take(source, Ints(starts, "take: starts", 1).of("take: starts", {B}).data(),
             Ints(lengths, "take: lengths", 1).of("take: lengths", {B}).data(), B, rows.size(1), fill,
             rows.data());
}

template <class Whole, class Id>
Id* join_row(nb::handle row, int64_t vocabulary, Id* at, const Id* end) {
  const View<const Whole> ids(row, "join: a row", 1);
  check(ids.size(0) <= end - at, "join: the rows must have as many ids as there is room for, got more");
  return text::narrowed(ids.data(), ids.size(0), vocabulary, at);
}

template <class Id>
void join(nb::list rows, int64_t vocabulary, nb::handle out) {
  const View<Id> joined(out, "join: out", 1);
  Id *at = joined.data(), *const end = at + joined.size(0);
  for (nb::handle row : rows) {
    const bool wide = nb::cast<int64_t>(row.attr("itemsize")) == 8;
    at = wide ? join_row<int64_t>(row, vocabulary, at, end) : join_row<int32_t>(row, vocabulary, at, end);
  }
  check(at == end, "join: the rows must have ", joined.size(0), " ids in all, got ", at - joined.data());
}

void lay_out(nb::sequence texts, nb::sequence lengths, const std::vector<std::vector<int64_t>>& fixed,
             bool right, int64_t fill, nb::handle out) {
  const View<int64_t> rows(out, "lay_out: out", 2);
  const int64_t B = rows.size(0);
  std::vector<std::unique_ptr<Ints>> views;
  std::vector<text::Part> parts;
  const size_t n = nb::len(texts);
  check(nb::len(lengths) == n && fixed.size() == n + 1, "lay_out: ", n, " texts need ", n, " lengths and ",
        n + 1, " lists of fixed tokens, got ", nb::len(lengths), " and ", fixed.size());
  for (size_t k = 0; k < n; ++k) {
    const Ints& sizes = *views.emplace_back(std::make_unique<Ints>(lengths[k], "lay_out: lengths", 1));
    sizes.of("lay_out: lengths", {B});
    if (nb::isinstance<nb::int_>(texts[k])) {
      parts.push_back({nullptr, 0, nb::cast<int64_t>(texts[k]), sizes.data()});
    } else {
      const Ints& text = *views.emplace_back(std::make_unique<Ints>(texts[k], "lay_out: a text", 2));
      check(text.size(0) == B, "lay_out: a text must have ", B, " rows, got ", text.size(0));
      parts.push_back({text.data(), text.size(1), 0, sizes.data()});
    }
  }
  text::lay_out(parts, fixed, B, rows.size(1), right, fill, rows.data());
}

}  // namespace

void bind_text(nb::module_& m) {
  m.def("documents", &documents, "data"_a, "continues"_a,
        nb::sig("def documents(data: bytes, continues: bool) -> list[str]"),
        "What lies between the blank lines of UTF-8. continues: the first is the rest of a document, from a "
        "line break on, or empty.");
  m.def("sentences", &sentences, "text"_a, nb::sig("def sentences(text: str) -> list[str]"),
        "The sentences of a text; put together they are the text. plmcore.data.sentences has the rule.");
  m.def(
      "take",
      [](nb::handle ids, nb::handle ends, int64_t separator, nb::handle starts, nb::handle lengths,
         int64_t fill, nb::handle out) {
        const bool narrow = nb::cast<int64_t>(ids.attr("itemsize")) == 2;
        (narrow ? take<uint16_t> : take<uint32_t>)(ids, ends, separator, starts, lengths, fill, out);
      },
      "ids"_a, "ends"_a.none(), "separator"_a, "starts"_a, "lengths"_a, "fill"_a, "out"_a,
      nb::sig("def take(ids: numpy.ndarray, ends: numpy.ndarray | None, separator: int, starts: "
              "numpy.ndarray, lengths: numpy.ndarray, fill: int, out: numpy.ndarray) -> None"),
      "out[b, t] = what stands at starts[b] + t in documents on end, with a separator before each of `ends`; "
      "`fill` from lengths[b] on.  ids uint16 or uint32 [tokens], others int64, out [B, T]");
  m.def(
      "join",
      [](nb::list rows, int64_t vocabulary, nb::handle out) {
        (nb::cast<int64_t>(out.attr("itemsize")) == 2 ? join<uint16_t> : join<uint32_t>)(rows, vocabulary,
                                                                                         out);
      },
      "rows"_a, "vocabulary"_a, "out"_a,
      nb::sig("def join(rows: list[numpy.ndarray], vocabulary: int, out: numpy.ndarray) -> None"),
      "The ids of all rows on end; each must be below the size of the vocabulary.  rows int32 or int64 [n] "
      "each, out uint16 or uint32");
  m.def("lay_out", &lay_out, "texts"_a, "lengths"_a, "fixed"_a, "right"_a, "fill"_a, "out"_a,
        nb::sig("def lay_out(texts: Sequence[numpy.ndarray | int], lengths: Sequence[numpy.ndarray], fixed: "
                "Sequence[Sequence[int]], right: bool, fill: int, out: numpy.ndarray) -> None"),
        "Each row of out [B, T] is fixed[0], lengths[0][b] of the first text [B, width] (or of a number), "
        "fixed[1], ..., at the left or right, and `fill` elsewhere.");
  m.def(
      "uniform",
      [](nb::handle keys, nb::handle out) {
        if (nb::cast<int>(out.attr("ndim")) == 1) {
          const View<double> row(out, "uniform: out", 1);
          text::uniform(
              View<const uint64_t>(keys, "uniform: keys", 1).of("uniform: keys", {row.size(0)}).data(),
              row.size(0), row.data());
          return;
        }
        const View<double> rows(out, "uniform: out", 2);
        text::uniform(
            View<const uint64_t>(keys, "uniform: keys", 1).of("uniform: keys", {rows.size(0)}).data(),
            rows.size(0), rows.size(1), rows.data());
      },
      "keys"_a, "out"_a, nb::sig("def uniform(keys: numpy.ndarray, out: numpy.ndarray) -> None"),
      "out[b, t] = plmcore.runtime.draws.uniform(keys[b], t), or out[b] = "
      "plmcore.runtime.draws.uniform(keys[b]).  keys uint64 [B], out float64 [B, T] or [B]");
  m.def(
      "hide",
      [](nb::handle ids, nb::handle chosen, nb::handle u, double below, double mask_share,
         double random_share, int64_t mask, nb::handle random, int64_t ignored, nb::handle hidden,
         nb::handle labels) {
        const Ints tokens(ids, "hide: ids", 2);
        const int64_t B = tokens.size(0), T = tokens.size(1);
        const View<const bool> which(chosen, "hide: chosen", 2);
        const View<const double> draws(u, "hide: u", 2);
        const Ints others(random, "hide: random", 1);
        const View<int64_t> out(hidden, "hide: hidden", 2), answers(labels, "hide: labels", 2);
        text::hide(
            tokens.data(), which.of("hide: chosen", {B, T}).data(), draws.of("hide: u", {B, T}).data(), B * T,
            {below, mask_share, random_share, mask, {others.data(), static_cast<size_t>(others.size(0))}},
            ignored, out.of("hide: hidden", {B, T}).data(), answers.of("hide: labels", {B, T}).data());
      },
      "ids"_a, "chosen"_a, "u"_a, "below"_a, "mask_share"_a, "random_share"_a, "mask"_a, "random"_a,
      "ignored"_a, "hidden"_a, "labels"_a,
      nb::sig("def hide(ids: numpy.ndarray, chosen: numpy.ndarray, u: numpy.ndarray, below: float, "
              "mask_share: float, random_share: float, mask: int, random: numpy.ndarray, ignored: int, "
              "hidden: numpy.ndarray, labels: numpy.ndarray) -> None"),
      "hidden: ids, but the chosen ones become by u / below in [0, 1) the mask, one of `random` or stay; "
      "labels: the chosen ids, `ignored` elsewhere.  chosen bool, u float64, random int64 [V], others int64, "
      "all [B, T]");
  m.def(
      "mark_spans",
      [](nb::handle sizes, nb::handle shifts, int64_t above, int64_t below, nb::handle begins,
         nb::handle lengths, nb::handle out) {
        const Ints spans(sizes, "mark_spans: sizes", 2), places(shifts, "mark_spans: shifts", 2),
            ends(lengths, "mark_spans: lengths", 1);
        const View<const bool> words(begins, "mark_spans: begins", 2);
        const View<bool> found(out, "mark_spans: out", 2);
        const int64_t B = words.size(0), T = words.size(1), K = spans.size(1);
        check<ValueError>(above >= 0 && below > 0, "mark_spans: the ratio must not be below 0, got ", above,
                          " / ", below);
        text::mark_spans(spans.of("mark_spans: sizes", {B, K}).data(),
                         places.of("mark_spans: shifts", {B, K}).data(), K, {above, below}, words.data(),
                         ends.of("mark_spans: lengths", {B}).data(), B, T,
                         found.of("mark_spans: out", {B, T}).data());
      },
      "sizes"_a, "shifts"_a, "above"_a, "below"_a, "begins"_a, "lengths"_a, "out"_a,
      nb::sig("def mark_spans(sizes: numpy.ndarray, shifts: numpy.ndarray, above: int, below: int, begins: "
              "numpy.ndarray, lengths: numpy.ndarray, out: numpy.ndarray) -> None"),
      "out: the tokens of spans, one after the other, each with a stretch of above / below as many tokens of "
      "its own in which it begins `shifts` later, at the next place of `begins`.  sizes, shifts int64 "
      "[B, K]; begins, out bool [B, T]; lengths int64 [B]");
  m.def(
      "choose_units",
      [](nb::handle starts, nb::handle able, nb::handle keys, nb::handle counts, nb::handle out) {
        const View<const bool> begins(starts, "choose_units: starts", 2),
            possible(able, "choose_units: able", 2);
        const View<const double> order(keys, "choose_units: keys", 2);
        const View<bool> found(out, "choose_units: out", 2);
        const int64_t B = begins.size(0), T = begins.size(1);
        text::choose_units(begins.data(), possible.of("choose_units: able", {B, T}).data(),
                           order.of("choose_units: keys", {B, T}).data(),
                           Ints(counts, "choose_units: counts", 1).of("choose_units: counts", {B}).data(), B,
                           T, found.of("choose_units: out", {B, T}).data());
      },
      "starts"_a, "able"_a, "keys"_a, "counts"_a, "out"_a,
      nb::sig("def choose_units(starts: numpy.ndarray, able: numpy.ndarray, keys: numpy.ndarray, counts: "
              "numpy.ndarray, out: numpy.ndarray) -> None"),
      "out: the able tokens of units in the order of their keys, as long as a unit fits into what is left of "
      "counts [B].  starts, able, out bool, keys float64 of the k-th unit, all [B, T]");
  m.def(
      "permutation_mask",
      [](nb::handle rank, nb::handle plain, nb::handle targets, nb::handle out) {
        const View<const double> ranks(rank, "permutation_mask: rank", 2);
        const int64_t B = ranks.size(0), T = ranks.size(1);
        const View<const bool> seen(plain, "permutation_mask: plain", 2),
            hidden(targets, "permutation_mask: targets", 2);
        const View<float> mask(out, "permutation_mask: out", 3);
        text::permutation_mask(ranks.data(), seen.of("permutation_mask: plain", {B, T}).data(),
                               hidden.of("permutation_mask: targets", {B, T}).data(), B, T,
                               mask.of("permutation_mask: out", {B, T, T}).data());
      },
      "rank"_a, "plain"_a, "targets"_a, "out"_a,
      nb::sig("def permutation_mask(rank: numpy.ndarray, plain: numpy.ndarray, targets: numpy.ndarray, out: "
              "numpy.ndarray) -> None"),
      "out[b, i, j] = 1 where i may not see j: where rank[i] <= rank[j], a plain j taken for half lower; i "
      "sees itself unless it is a target.  rank float64, plain and targets bool [B, T], out float32 "
      "[B, T, T]");
}

}  // namespace plmcore::bindings
