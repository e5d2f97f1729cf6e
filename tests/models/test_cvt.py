"""CVT: what each head sees, where it learns from, and padding that changes nothing."""

import json

import numpy as np
import plmcore as plm
import pytest

SMALL = dict(
    model_type="cvt",
    vocab_size=30,
    d_embed=6,
    d_char=4,
    char_filters=[[2, 3], [3, 2]],
    d_uni=5,
    d_bi=4,
    d_projection=3,
    num_labels=4,
)
HEADS = {"token-classification": (2, 7), "sequence-classification": (2,)}  # with the shape of their labels


def model(head="token-classification", **changes):
    plm.seed(3)
    return plm.from_config(SMALL, head, **changes)


def batch(head="token-classification", T=7, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(4, 30, (2, T))
    ids[:, 0], ids[:, -1] = 2, 3
    if T > 4:
        ids[1, -3:] = 3, 0, 0
    labels = rng.integers(0, 4, ids.shape if head == "token-classification" else 2)
    if labels.ndim == 2:
        labels[(ids < 4)] = -100
    return ids, rng.integers(1, 109, (2, T, 9)), labels


def probabilities(logits):
    logits = logits.numpy().astype(np.float64)
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def kl(p, q):
    return (p * (np.log(p) - np.log(q))).sum(-1)


def test_published_size():
    count = plm.models.count_parameters(plm.models.config_from_dict({"model_type": "cvt"}))
    lstm = lambda x, h, p: 2 * (4 * h * (x + p + 2) + p * h)
    words, chars = 30000 * 300 + 1, 109 * 50 + sum(100 * (50 * w + 1) for w in (2, 3, 4))
    assert count == words + chars + lstm(600, 1024, 512) + lstm(1024, 512, 512)


@pytest.mark.parametrize("head", HEADS)
def test_labels_teach_the_primary_head_and_text_the_others(head):
    lm = model(head)
    ids, chars, labels = batch(head)
    parts = {"primary": lm.model.primary, "auxiliary": lm.model.auxiliary, "body": lm.model.body}
    assert set(lm.model.auxiliary) == {"full", "forward", "backward", "future", "past"}
    for loss, learns in (
        (lambda: lm.model.labelled_loss(ids, chars, labels), {"primary", "body"}),
        (lambda: lm.model.unlabelled_loss(ids, chars), {"auxiliary", "body"}),
    ):
        lm.model.zero_grad()
        loss().backward()
        assert {
            k for k, part in parts.items() if all(p.grad is not None for p in part.parameters())
        } == learns
        rest = [part for k, part in parts.items() if k not in learns]
        assert all(p.grad is None for part in rest for p in part.parameters())


@pytest.mark.parametrize("head", HEADS)
def test_soft_targets_are_made_without_dropout(head):
    ids, chars, _ = batch(head)
    lm = model(head, unlabelled_dropout=0.0)
    assert lm.config.dropout == 0.5
    still = lm.eval().model.unlabelled_loss(ids, chars).item()
    assert lm.train().model.unlabelled_loss(ids, chars).item() == still
    dropped = model(head, unlabelled_dropout=0.2).train().model
    assert len({round(dropped.unlabelled_loss(ids, chars).item(), 6) for _ in range(3)}) == 3


def test_each_view_of_a_word():
    """KL to the primary head's label of the same word, of the next one and of the one before."""
    lm = model().eval()
    ids, chars, _ = batch()
    encoded = lm.model.body.encode(plm.Tensor(ids), plm.Tensor(chars))
    rows = encoded.layout.unpack(encoded.rows).numpy()
    P = lm.config.uni_width
    seen = dict(full=rows, forward=rows[..., :P], backward=rows[..., P : 2 * P])
    seen |= dict(future=seen["forward"], past=seen["backward"])
    target = probabilities(lm(input_ids=ids, char_ids=chars).logits)
    found = lm.model.unlabelled_sums(ids, chars)
    words, total = ids >= 4, 0.0
    assert words.sum() == 8
    for view, x in seen.items():
        own = probabilities(lm.model.auxiliary[view](plm.Tensor(np.ascontiguousarray(x))))
        step = {"future": 1, "past": -1}.get(view, 0)
        at = [(b, t, t + step) for b, t in zip(*np.nonzero(words)) if 0 < t + step < 7 and words[b, t + step]]
        wanted = sum(kl(target[b, other], own[b, t]) for b, t, other in at)
        value, count = found[f"task {view}"]
        assert count.item() == len(at) == lm.model.unlabelled_counts({"input_ids": ids})[f"task {view}"]
        np.testing.assert_allclose(value.item(), wanted, rtol=1e-5)
        total += wanted / len(at)
    np.testing.assert_allclose(lm.model.unlabelled_loss(ids, chars).item(), total, rtol=1e-5)


def test_each_view_of_a_text():
    """All words, the first half forwards, the second half backwards; of five words the third is in both."""
    lm = model("sequence-classification").eval()
    ids, chars, _ = batch("sequence-classification")
    encoded = lm.model.body.encode(plm.Tensor(ids), plm.Tensor(chars))
    rows = encoded.layout.unpack(encoded.rows).numpy()
    P = lm.config.uni_width
    words = [range(1, 6), range(1, 4)]
    target = probabilities(lm(input_ids=ids, char_ids=chars).logits)
    for view, columns, read in (
        ("full", slice(None), words),
        ("forward", slice(0, P), words),
        ("backward", slice(P, 2 * P), words),
        ("future", slice(0, P), [range(1, 4), range(1, 3)]),
        ("past", slice(P, 2 * P), [range(3, 6), range(2, 4)]),
    ):
        x = np.stack([rows[b, list(w), columns].mean(0) for b, w in enumerate(read)])
        wanted = kl(target, probabilities(lm.model.auxiliary[view](plm.Tensor(x)))).sum()
        value, count = lm.model.unlabelled_sums(ids, chars)[f"task {view}"]
        assert count.item() == 2
        np.testing.assert_allclose(value.item(), wanted, atol=1e-6)


@pytest.mark.parametrize("head", HEADS)
def test_padding_and_other_rows_change_nothing(head):
    lm = model(head).eval()
    ids, chars, _ = batch(head)
    both = lm(input_ids=ids, char_ids=chars).logits.numpy()
    alone = lm(input_ids=ids[1:, :5], char_ids=chars[1:, :5]).logits.numpy()
    np.testing.assert_allclose(both[1:, :5] if both.ndim == 3 else both[1:], alone, atol=1e-6)
    mask = (ids != 0).astype(np.int64)
    np.testing.assert_array_equal(lm(input_ids=ids, char_ids=chars, attention_mask=mask).logits.numpy(), both)
    left_ids, left_chars = np.roll(ids, 2, 1), np.roll(chars, 2, 1)
    left = lm(input_ids=left_ids[1:], char_ids=left_chars[1:]).logits.numpy()
    np.testing.assert_allclose(left[:, 2:] if left.ndim == 3 else left, alone, atol=1e-6)


def test_spelling_tells_words_apart():
    lm = model().eval()
    ids, chars, _ = batch()
    other = chars.copy()
    other[0, 2] = other[0, 2, ::-1]
    a, b = (lm(input_ids=ids, char_ids=c).logits.numpy() for c in (chars, other))
    assert (a[0] != b[0]).any() and (a[1] == b[1]).all()
    short = lm(input_ids=ids, char_ids=chars[..., :1]).logits  # shorter than the widest filter
    assert short.shape == (2, 7, 4)


@pytest.mark.parametrize("head", HEADS)
def test_texts_without_words_or_neighbours(head):
    lm = model(head)
    ids, chars, _ = batch(head, T=3)
    for few in (ids, ids[:, :1], np.zeros((2, 3), np.int64)):
        loss = lm.model.unlabelled_loss(few, chars[:, : few.shape[1]])
        assert np.isfinite(loss.item())
        loss.backward()
    counts = lm.model.unlabelled_counts({"input_ids": ids[:, :1]})
    assert set(counts.values()) == {0}


TASKS = [
    dict(name="pos", task="tagging", labels=["D", "N", "V"]),
    dict(name="mood", task="classification", labels=["good", "bad"]),
]


def test_several_tasks_over_one_body(tmp_path):
    lm = model(tasks=TASKS, task_name="ner")
    ids, chars, labels = batch()
    assert lm.model.tasks == ("ner", "pos", "mood")
    lm.model.labelled_loss(ids, chars, np.minimum(labels, 2), task=1).backward()
    touched = [i for i, heads in enumerate(lm.model.heads) if heads.primary.out.weight.grad is not None]
    assert touched == [1]
    names = set(lm.model.unlabelled_sums(ids, chars))
    assert len(names) == 15 and {"ner full", "pos past", "mood future"} <= names
    lm.save(tmp_path / "dir")
    again = plm.load(tmp_path / "dir")
    assert again.model.tasks == lm.model.tasks
    lm.eval()
    for task, head in enumerate(("token-classification", "token-classification", "sequence-classification")):
        one = plm.LanguageModel(lm.model.alone(task))
        assert one.head == head and one.model.body is lm.model.body
        one.save(tmp_path / f"task-{task}")
        logits = plm.load(tmp_path / f"task-{task}")(input_ids=ids, char_ids=chars).logits.numpy()
        wanted = again(input_ids=ids, char_ids=chars, task=task).logits.numpy()
        np.testing.assert_array_equal(logits, wanted)
    kept = json.loads((tmp_path / "task-2" / "config.json").read_text())
    assert kept["id2label"] == {"0": "good", "1": "bad"} and kept["task_name"] == "mood"
    with pytest.raises(plm.ArgumentError, match="there is no task 3; there are ner, pos, mood"):
        lm.model.alone(3)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(tasks=[dict(name="pos", task="qa", labels=["a"])]), "tasks must be objects"),
        (dict(tasks=[dict(name="task", task="tagging", labels=["a"])]), "tasks must have a name of its own"),
        (dict(tasks=[dict(name="pos", task="tagging", labels=[])]), "tasks must have texts as labels"),
        (dict(char_filters=[[0, 3]]), "char_filters must be pairs"),
        (dict(char_filters=[[21, 3]]), "char_filters must be at most 20"),
        (dict(problem_type="regression"), "problem_type must be one of"),
    ],
)
def test_configs_that_do_not_fit(changes, message):
    with pytest.raises(plm.ArgumentError, match=message):
        model(**changes)


def test_characters_that_do_not_fit():
    lm = model()
    ids, chars, labels = batch()
    for wrong in (chars[0], chars[:, :3], chars.astype(np.float32)):
        with pytest.raises(plm.ShapeError, match="char_ids must be whole numbers"):
            lm.model.labelled_loss(ids, wrong, labels)
    with pytest.raises(plm.IndexRangeError):
        lm.model.labelled_loss(ids, chars + 200, labels)
