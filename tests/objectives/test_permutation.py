import fakes
import numpy as np
import pytest
from plmcore.data import Corpus
from plmcore.objectives import PermutationLM

IGNORED = -100
XLNET = fakes.Numbers("xlnet")


def made(length=64, **settings):
    return PermutationLM(fakes.corpus(XLNET, documents=100), XLNET, length=length, **settings)


def everything(objective, epoch=0):
    return objective.batch(np.arange(len(objective)), seed=0, epoch=epoch)


def reach(perm_mask, real):
    """What each content vector depends on after any number of layers; it sees itself.  bool [B, T, T]"""
    sees = (perm_mask == 0) & real[:, None, :]
    sees |= np.eye(real.shape[1], dtype=bool)
    for _ in range(8):
        sees = (sees.astype(np.float32) @ sees.astype(np.float32)) > 0
    return sees


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"block": 32},
        {"predict": 20, "words": False},
        {"block": 16, "predict": 15},
        {"packing": "documents"},
    ],
)
def test_masks_leak_nothing(settings):
    batch = everything(made(**settings))
    real = batch["attention_mask"] == 1
    targets = batch["target_mapping"].sum(1) > 0  # [B, T]
    depends = reach(batch["perm_mask"], real)  # content
    visible = (batch["perm_mask"] == 0) & real[:, None, :]
    query = (visible.astype(np.float32) @ depends.astype(np.float32)) > 0  # what a prediction depends on
    row, place = np.nonzero(targets)
    assert len(row) > 300
    assert not query[row, place, place].any()  # not on itself
    assert query[row, place].any(1).all()  # but on something
    # of two targets at most one is known to the other's prediction: an order exists
    both = query & query.transpose(0, 2, 1) & targets[:, :, None] & targets[:, None, :]
    assert not both.any()
    # one of two targets of a block is always known to the other
    block = (np.arange(real.shape[1]) - (~real).sum(1)[:, None]) // settings.get("block", 64)
    same = (block[:, :, None] == block[:, None, :]) & targets[:, :, None] & targets[:, None, :]
    assert ((query | query.transpose(0, 2, 1)) | ~same | np.eye(real.shape[1], dtype=bool)).all()


def test_text_that_is_not_predicted_sees_no_targets_and_all_text():
    batch = everything(made())
    ids, targets = batch["input_ids"], batch["target_mapping"].sum(1) > 0
    plain = (ids >= XLNET.first) & ~targets
    blocked = batch["perm_mask"] == 1
    assert blocked[plain[:, :, None] & targets[:, None, :]].all()
    assert not blocked[plain[:, :, None] & plain[:, None, :]].any()
    assert not blocked[targets[:, :, None] & plain[:, None, :]].any()


def test_blocks_see_those_before_them():
    batch = everything(made(block=32))
    block = np.arange(64) // 32
    first_sees_second = batch["perm_mask"][:, block == 0][:, :, block == 1]
    assert first_sees_second.all()
    assert not batch["perm_mask"][:, block == 1][:, :, block == 0].any()


def test_labels_are_the_tokens_at_the_targets():
    batch = everything(made())
    found = np.einsum("bmt,bt->bm", batch["target_mapping"], batch["input_ids"])
    used = batch["target_mapping"].any(2)
    assert np.array_equal(found[used], batch["labels"][used]) and (batch["labels"][~used] == -100).all()
    assert (batch["labels"][used] >= XLNET.first).all()  # never a special token
    assert (batch["target_mapping"].sum(2) <= 1).all()
    text = fakes.stream(fakes.corpus(XLNET, documents=100), XLNET.eos_token_id)
    assert batch["input_ids"][:, :-2].ravel().tolist() == text[: len(batch["input_ids"]) * 62].tolist()


def test_exactly_so_many_targets():
    batch = everything(made(predict=11))
    assert (batch["labels"] != -100).all() and batch["labels"].shape[1] == 11


def test_spans():
    """Lengths fall as 1/n; about one token in seven is predicted: n of every n + 6 n."""
    tokenizer = fakes.Numbers("xlnet")
    tokenizer.word_starts[:] = True
    objective = PermutationLM(
        Corpus.from_ids([np.full(80_000, tokenizer.first)], tokenizer.vocab_size), tokenizer, length=512
    )
    batch = everything(objective)
    targets = batch["target_mapping"].any(1)
    assert abs(targets.sum() / (len(targets) * 510) - 1 / 7) < 0.005
    edges = np.diff(np.pad(targets, ((0, 0), (1, 1))).astype(int), axis=1)
    sizes = np.nonzero(edges == -1)[1] - np.nonzero(edges == 1)[1]
    weights = 1 / np.arange(1, 6)
    counts = np.bincount(sizes)[1:6]
    assert (abs(counts / len(sizes) - weights / weights.sum()) < 0.02).all() and (
        sizes > 5
    ).sum() < 0.02 * len(sizes)


def test_spans_begin_with_words():
    batch = everything(made(length=512))
    targets, ids = batch["target_mapping"].any(1), batch["input_ids"]
    begins = targets & ~np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
    begins[:, 1:] &= ids[:, :-1] >= XLNET.first  # the separator of documents in a span is no target
    assert XLNET.word_starts[ids[begins]].all() and begins.sum() > 100


def test_a_block_of_targets_alone_gives_up_one():
    corpus = Corpus.from_ids([[20, 21]] * 50, 1000)
    objective = PermutationLM(corpus, XLNET, length=8, packing="documents", predict=5)
    batch = everything(objective)
    assert ((batch["labels"] != -100).sum(1) == 1).all()
    lonely = PermutationLM(Corpus.from_ids([[20]] * 5, 1000), XLNET, length=8, packing="documents")
    assert (everything(lonely)["labels"] == -100).all()  # nothing to see: no target


def test_settings_are_checked():
    for settings, message in (
        ({"predict": 64}, "predict must be 1 to 63 .less than a block., got 64"),
        ({"predict": 0}, "got 0"),
        ({"block": 1}, "block must be at least 2, got 1"),
        ({"alpha": 1}, "alpha above beta, got longest 5, alpha 1, beta 1"),
        ({"longest": 0}, "got longest 0"),
    ):
        with pytest.raises(ValueError, match=message):
            made(**settings)


def test_targets_are_split_between_the_halves():
    """85 of 512, as published: 43 in the first half, 42 in the second, whose last two tokens are special."""
    tokenizer = fakes.Numbers("xlnet")
    corpus = fakes.corpus(tokenizer, documents=80)
    objective = PermutationLM(corpus, tokenizer, length=512, block=256, stride=256, streams=2, predict=85)
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    places = np.where(batch["labels"] == IGNORED, -1, batch["target_mapping"].argmax(2))
    assert ((places >= 0).sum(1) == 85).all()
    assert (((places >= 0) & (places < 256)).sum(1) == 43).all()
    later = batch["perm_mask"][:, :256, 256:]
    assert (later == 1).all()  # the first half, which is remembered, knows nothing of the second
