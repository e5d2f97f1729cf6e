import fakes
import numpy as np
import plmcore as plm
import pytest
from plmcore import data
from plmcore.models import spelling
from plmcore.objectives import BidirectionalLM
from plmcore.tokenizers import train_tokenizer

IGNORED = -100


def test_both_directions():
    bart = fakes.Numbers("bart")
    objective = BidirectionalLM(fakes.corpus(bart), bart, length=30)
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    assert len(np.unique(batch["attention_mask"].sum(1))) > 3
    for ids, mask, forward, backward in zip(
        *(batch[k] for k in ("input_ids", "attention_mask", "forward_labels", "backward_labels"))
    ):
        n = mask.sum()
        assert forward[: n - 1].tolist() == ids[1:n].tolist() and (forward[n - 1 :] == IGNORED).all()
        assert (
            backward[1:n].tolist() == ids[: n - 1].tolist()
            and backward[0] == IGNORED
            and (backward[n:] == IGNORED).all()
        )


LINES = ["the cat sat", "a dog", "the end of the day", "so", "one more line"] * 8


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    (folder / "text.txt").write_text("\n".join(LINES) + "\n")
    tokenizer = train_tokenizer([folder / "text.txt"], kind="words", vocab_size=None, family="elmo")
    data.write_corpus(
        folder / "corpus", [folder / "text.txt"], tokenizer, documents="file", sentences="lines", workers=1
    )
    return tokenizer, data.Corpus.open(folder / "corpus")


def test_streams_read_sentences_in_both_directions(words):
    """Against lists: what a place reads and predicts, in reading order, over all windows of each stream."""
    tokenizer, corpus = words
    streams, T = 3, 4
    objective = BidirectionalLM(corpus, tokenizer, T, streams=streams)
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    read, following, back, before = [], [], [], []
    for line in LINES:
        ids = tokenizer.encode_ids([line])[0].tolist()
        read += [begin, *ids]
        following += [*ids, end]
        back += [end, *ids[::-1]]
        before += [*ids[::-1], begin]
    part = len(read) // streams
    batches = data.Batches(objective, streams, seed=0, shuffle=False)
    assert batches.steps_per_epoch() == part // T
    for step in range(batches.steps_per_epoch()):
        batch = batches[step]
        assert batch["attention_mask"].all()
        for row in range(streams):
            place = slice(row * part + step * T, row * part + step * T + T)
            assert batch["input_ids"][row].tolist() == read[place]
            assert batch["forward_labels"][row].tolist() == following[place]
            assert batch["backward_input_ids"][row].tolist() == back[place][::-1]
            assert batch["backward_labels"][row].tolist() == before[place][::-1]


def test_words_are_spelled(words):
    tokenizer, corpus = words
    plain = BidirectionalLM(corpus, tokenizer, 6, streams=2).batch([0, 1], seed=0, epoch=0)
    spelled = BidirectionalLM(corpus, tokenizer, 6, streams=2, characters=9).batch([0, 1], seed=0, epoch=0)
    assert spelled["input_ids"].shape == spelled["backward_input_ids"].shape == (2, 6, 9)
    assert np.array_equal(spelled["forward_labels"], plain["forward_labels"])
    assert spelled["input_ids"][0, 0].tolist() == spelling.edges(9)[0].tolist()
    texts = [spelling.read(row) for row in spelled["input_ids"][0]]
    assert texts[:4] == ["", "the", "cat", "sat"]
    whole = BidirectionalLM(corpus, tokenizer, 8, characters=9).batch([0, 1], seed=0, epoch=0)
    assert whole["input_ids"].shape[2] == 9 and "backward_input_ids" not in whole
    assert not whole["input_ids"][whole["attention_mask"] == 0].any()


def test_rare_words_are_read_and_not_predicted(words):
    tokenizer, corpus = words
    plain, few = (
        BidirectionalLM(corpus, tokenizer, 6, streams=2, characters=9, words=n).batch([0, 1], seed=0, epoch=0)
        for n in (None, 6)
    )
    for name in ("forward_labels", "backward_labels"):
        assert plain[name].max() >= 6 > few[name].max()
        rare = plain[name] >= 6
        assert (few[name][rare] == tokenizer.unk_token_id).all()
        assert np.array_equal(few[name][~rare], plain[name][~rare])
    assert np.array_equal(few["input_ids"], plain["input_ids"])


def test_bad_settings(words):
    tokenizer, corpus = words
    with pytest.raises(plm.ArgumentError, match="characters must be at least 4, got 2"):
        BidirectionalLM(corpus, tokenizer, 8, characters=2)
    with pytest.raises(plm.ArgumentError, match="words must leave an id"):
        BidirectionalLM(corpus, tokenizer, 8, words=0)
    with pytest.raises(plm.ArgumentError, match="no window of 8 fits"):
        BidirectionalLM(corpus, tokenizer, 8, streams=100)
    gpt = fakes.Numbers("gpt")
    gpt.bos_token_id = None
    with pytest.raises(plm.ArgumentError, match="need a tokenizer with a begin"):
        BidirectionalLM(fakes.corpus(gpt), gpt, 8, streams=2)
