import fakes
import numpy as np
import pytest
from plmcore.objectives import BlankInfilling

BERT = fakes.Numbers()
MASKS = [BERT.ids[t] for t in ("[MASK]", "[sMASK]", "[gMASK]")]
START, END = BERT.ids["<|startofpiece|>"], BERT.ids["<|endofpiece|>"]


def examples(modes, documents=60, **settings):
    objective = BlankInfilling(
        fakes.corpus(BERT, documents=documents), BERT, length=96, modes=modes, **settings
    )
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    keys = ("input_ids", "labels", "position_ids", "block_position_ids", "source_lengths", "attention_mask")
    for ids, labels, position, block, source, mask in zip(*(batch[k] for k in keys)):
        n = mask.sum()
        yield objective, ids[:n], labels[:n], position[:n], block[:n], source


def pieces(ids, labels, position, source):
    """mask's place -> the span's tokens, in the order of part B."""
    found = []
    for at in np.flatnonzero(ids == START):
        end = at + np.flatnonzero(labels[at:] == END)[0]
        assert ids[at + 1 : end + 1].tolist() == labels[at:end].tolist()  # shifted by one, inside the piece
        assert (position[at : end + 1] == position[at]).all()
        found.append((int(position[at]), labels[at:end].tolist()))
    assert sum(len(span) + 1 for _, span in found) == len(ids) - source
    return found


@pytest.mark.parametrize("mode", range(3))
def test_pieces_put_back_are_the_text(mode):
    modes = [0, 0, 0]
    modes[mode] = 1
    text, orders = [], []
    for objective, ids, labels, position, block, source in examples(modes):
        assert (labels[:source] == -100).all() and (labels[source:] != -100).all()
        assert position[:source].tolist() == list(range(source)) and (block[:source] == 0).all()
        found = pieces(ids, labels, position, source)
        assert [i for i in range(source) if ids[i] == MASKS[mode]] == sorted(at for at, _ in found)
        assert not np.isin(ids[:source], [m for k, m in enumerate(MASKS) if k != mode]).any()
        assert block[source:].tolist() == [k for _, span in found for k in range(1, len(span) + 2)]
        spans = dict(found)
        orders.append([at for at, _ in found])
        for i in range(source):
            text += spans[i] if i in spans else fakes.text_of([ids[i]], BERT)
        assert ids[0] == BERT.cls_token_id and ids[source - 1] == BERT.sep_token_id
        assert found
    assert text == fakes.stream(objective.corpus).tolist()
    if mode == 0:
        assert any(order != sorted(order) for order in orders)  # spans are shuffled


def test_token_spans():
    hidden = total = 0
    sizes = []
    for _, ids, labels, position, _, source in examples((1, 0, 0), documents=400, packing="windows"):
        found = pieces(ids, labels, position, source)
        places = sorted(at for at, _ in found)
        assert (np.diff(places) > 1).all()  # a token between each two
        sizes += [len(span) for _, span in found]
        n = sum(len(span) for _, span in found)
        hidden, total = hidden + n, total + source - 2 - len(found) + n
        assert n >= int(0.15 * 94) and max(map(len, dict(found).values())) < 40
    assert 0.14 < hidden / total < 0.18  # the last span may go beyond 15 %
    assert abs(np.mean(sizes) - 3 / (1 - np.exp(-3))) < 0.25


def test_sentences_are_blanked_as_wholes():
    for objective, ids, labels, position, _, source in examples((0, 1, 0)):
        ends = {
            tuple(s) for s in np.split(np.asarray(objective.corpus.ids), objective.corpus.sentences[1:-1])
        }
        for _, span in pieces(ids, labels, position, source):
            assert tuple(span) in ends


def test_documents_lose_at_least_half():
    shares = []
    for _, ids, labels, position, _, source in examples((0, 0, 1), documents=300):
        [(at, span)] = pieces(ids, labels, position, source)
        assert at == source - 2
        shares.append(len(span) / (len(span) + source - 3))
        assert shares[-1] >= 0.5
    assert abs(np.mean(shares) - 0.75) < 0.02


def test_modes_are_mixed_by_weight():
    modes = [
        int(np.isin(MASKS, ids[:source]).argmax())
        for _, ids, *_, source in examples((2, 1, 1), documents=400)
    ]
    for k, share in enumerate((0.5, 0.25, 0.25)):
        fakes.assert_share(modes.count(k), len(modes), share)


def test_settings_are_checked():
    plain = fakes.Numbers()
    plain.ids = {k: v for k, v in plain.ids.items() if k not in ("[gMASK]", "<|endofpiece|>")}
    corpus = fakes.corpus(BERT)
    for tokenizer, settings, message in (
        (plain, {"modes": (1, 0, 1)}, r"needs <\|endofpiece\|>, \[gMASK\], and this tokenizer has none"),
        (BERT, {"modes": (0, 0, 0)}, r"three weights \(token, sentence, document\), got \[0, 0, 0\]"),
        (BERT, {"rate": 0}, "rate must be above 0"),
        (BERT, {"mean": 0}, "mean must be above 0 and longest at least 1, got 0 and 39"),
    ):
        with pytest.raises(ValueError, match=message):
            BlankInfilling(corpus, tokenizer, **settings)
    given = BlankInfilling(corpus, plain, modes=(0, 0, 1), masks=[5, 6, 7], end=8)
    assert 7 in given.batch([0], seed=0, epoch=0)["input_ids"]
