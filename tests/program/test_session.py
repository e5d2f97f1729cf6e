"""Sessions over model files: what the C++ API gives, next to the model itself."""

import threading

import every_family
import generating_models
import numpy as np
import plmcore as plm
import pytest
from plmcore import _core
from plmcore.program import export

SIZES = [(1, 1), (2, 5), (3, 10), (5, 2), (4, 7)]
RULES = {
    "greedy": dict(max_new_tokens=8),
    "beams": dict(max_new_tokens=8, num_beams=3, num_return_sequences=2),
    "samples": dict(max_new_tokens=6, do_sample=True, seed=5, top_k=7, temperature=1.3),
}
# Without a program these look at the mask first: the rows that run may be others, and sums of theirs differ
# in the last bit.
LOOKS = ("double-heads", "sequence-classification", "question-answering", "answer-beams")
rng = np.random.default_rng(3)


def opened(lm, folder, **options):
    plm.export(lm, folder / "model.plm")
    return plm.Program.load(folder / "model.plm", **options)


def inputs_of(lm, B, T):
    """Ids and masks that fit the forward pass of a model; the last token ends the sequence."""
    sizes = {"B": B, "T": T, "S": T, "K": 3}
    found = {}
    for name, spec in export.signature(lm.model).items():
        shape = [d if isinstance(d, int) else sizes[str(d)] for d in spec.shape]
        found[name] = rng.integers(3, 30, shape) if name.endswith("input_ids") else np.zeros(shape, np.int64)
        if name == "attention_mask":
            found[name] = np.ones(shape, np.int64)
            found[name][..., T // 2 + 1 :] = rng.integers(0, 2) if B > 1 else 1
    if (eos := getattr(lm.config, "eos_token_id", None)) is not None:
        found["input_ids"][..., : T // 2 + 1][..., -1:] = eos
        found["input_ids"][..., T // 2 + 1 :] = 5 if eos != 5 else 6
    return found


@pytest.mark.parametrize(("family", "head"), every_family.HEADS)
def test_every_family_and_head_at_five_sizes(family, head, tmp_path):
    lm = every_family.model(family, head)
    session = opened(lm, tmp_path)
    for B, T in SIZES:
        T = max(T, 5) if head == "answer-beams" else T  # it looks at the five best starts
        inputs = inputs_of(lm, B, T)
        with plm.nn.inference():
            expected = every_family.flat(lm(**inputs))
        found = session.run(session.card.main, **inputs)
        assert found.keys() == expected.keys()
        for name, y in expected.items():
            a, b, where = found[name].numpy(), y.numpy(), f"{name} at {B} x {T}"
            if head in LOOKS:
                np.testing.assert_allclose(a, b, atol=1e-6, err_msg=where)
            else:
                np.testing.assert_array_equal(a, b, err_msg=where)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("family", generating_models.MODELS)
def test_generation_gives_the_ids_of_python(family, rules, tmp_path):
    lm = generating_models.model(family)
    prompts = [[4, 9, 5, 7], [11, 3, 8, 6], [8, 8, 6, 12]]
    options = dict(eos_token_id=generating_models.EOS, **RULES[rules])
    start = {"decoder_start_token_id": 1} if lm.head == "seq2seq-lm" else {}
    expected = lm.generate(prompts, pad_token_id=0, **options, **start)
    begun = [[1]] * 3 if start else []
    session = opened(lm, tmp_path)
    found = session._session.generate(prompts, session._options(options), None, begun)
    rows = [c.tokens for each in found for c in each]
    skip = 1 if start else 4
    for row, whole in zip(rows, expected.tolist(), strict=True):
        assert whole[skip : skip + len(row)] == row
        assert set(whole[skip + len(row) :]) <= {0, generating_models.EOS}  # what fills the batch


@pytest.mark.parametrize("weights", ["bfloat16", "int8"])
@pytest.mark.parametrize("family", ["gpt2", "t5", "bert"])
def test_stored_weights(family, weights, tmp_path):
    head = {"gpt2": "causal-lm", "t5": "seq2seq-lm", "bert": "sequence-classification"}[family]
    every_family.model(family, head).save(tmp_path / "dir")
    if weights == "int8":
        plm.quantize(tmp_path / "dir", "int8", out=tmp_path / "small")
        lm = plm.load(tmp_path / "small")
    else:
        lm = plm.load(tmp_path / "dir", dtype=weights)
    session = opened(lm, tmp_path)
    for B, T in SIZES:
        inputs = inputs_of(lm, B, T)
        with plm.nn.inference():
            expected = lm(**inputs).logits
        found = session.run(session.card.main, **inputs)["logits"]
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.to("float32").numpy(), expected.to("float32").numpy())
    if head != "sequence-classification":
        options = dict(max_new_tokens=5, eos_token_id=2)
        extra = {"decoder_start_token_id": 0} if family == "t5" else {}
        expected = lm.generate([[4, 9, 5]], pad_token_id=0, **options, **extra)[0]
        begun = [[0]] if extra else []
        [[got]] = session._session.generate([[4, 9, 5]], session._options(options), None, begun)
        assert expected.tolist()[1 if extra else 3 :][: len(got.tokens)] == got.tokens


def test_streams_tell_each_token_and_may_end_a_text(tmp_path):
    session = opened(generating_models.model("gpt2"), tmp_path)
    told = []
    [[whole]] = session.generate([[4, 9]], max_new_tokens=6, stream=lambda p, t: told.append((p, t)) or True)
    assert told == [(0, t) for t in whole.tokens] and len(told) == 6
    [[short]] = session.generate([[4, 9]], max_new_tokens=6, stream=lambda p, t: t != whole.tokens[2])
    assert short.tokens == whole.tokens[:3] or whole.tokens[2] in whole.tokens[:2]
    with pytest.raises(plm.ArgumentError, match="one sequence for each prompt, without beams"):
        session.generate([[4]], num_beams=2, max_new_tokens=2, stream=lambda p, t: True)


def test_labels_have_their_names(tmp_path):
    names = ["bad", "fair", "good"]
    labels = {str(i): name for i, name in enumerate(names)}
    config = every_family.config("bert", id2label=labels, num_labels=3)
    for head in ("sequence-classification", "token-classification"):
        lm = plm.from_config(config, head).eval()
        session = opened(lm, tmp_path)
        rows = [[4, 5, 6], [7]]
        logits = lm(input_ids=[rows[0]]).logits.numpy().reshape(-1, 3)
        found = session.classify(rows) if head == "sequence-classification" else session.tag(rows)[0]
        p = np.exp(logits[0] - logits[0].max())
        np.testing.assert_allclose(found[0].probabilities, p / p.sum(), rtol=1e-5)
        assert found[0].label == names[int(p.argmax())] and len(found) == (2 if head[0] == "s" else 3)


def test_answers(tmp_path):
    lm = every_family.model("bert", "question-answering")
    [spans] = opened(lm, tmp_path).answer([[4, 5, 6, 7, 8]], first=[2], best=4, longest=2)
    out = lm(input_ids=[[4, 5, 6, 7, 8]])
    start, end = out.start_logits.numpy()[0], out.end_logits.numpy()[0]
    scores = {(a, b): start[a] + end[b] for a in range(2, 5) for b in range(a, min(5, a + 2))}
    best = sorted(scores, key=scores.get, reverse=True)[:4]
    assert [(s.begin, s.end) for s in spans] == best


def test_a_session_is_for_one_thread_at_a_time(tmp_path):
    session = opened(generating_models.model("gpt2"), tmp_path)
    busy = []

    def told(prompt, token):
        with pytest.raises(plm._core.BusyError, match="in use by another thread; make one session for each"):
            session.encode([[1, 2]])
        busy.append(token)
        return False

    session.generate([[4, 9]], max_new_tokens=3, stream=told)
    assert len(busy) == 1
    assert session.encode([[1, 2]]).shape == (1, 12)


def test_sessions_in_threads_give_what_one_gives(tmp_path):
    lm = generating_models.model("gpt2")
    model = opened(lm, tmp_path).model
    prompts = [[int(t) for t in rng.integers(3, 30, 4)] for _ in range(8)]
    options = _core.Options()
    options.max_new_tokens = 12
    serial = [_core.Session(model).generate([p], options)[0][0].tokens for p in prompts]
    found = [None] * 8

    def work(i):
        session = _core.Session(model, 1)
        for _ in range(5):
            found[i] = session.generate([prompts[i]], options)[0][0].tokens

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == serial


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.run("sing"), plm.ArgumentError, "no program 'sing'; it has 'score', 'encode'"),
        (lambda s: s.run("score", input_ids=[[1]]), plm.ArgumentError, "'attention_mask' .* is missing"),
        (lambda s: s.run("score", ids=[[1]]), plm.ArgumentError, "'score' has no input 'ids'"),
        (
            lambda s: s.run("score", input_ids=[[1], [2]], attention_mask=[[1], [1], [1]]),
            plm.ShapeError,
            "B is 2 elsewhere but 3 here",
        ),
        (
            lambda s: s.run("score", input_ids=plm.Tensor([1.0]), attention_mask=[[1]]),
            plm.DTypeError,
            "'input_ids' must be int64",
        ),
        (lambda s: s.encode([[1, 99]]), plm.IndexRangeError, "row 0: the id 99 is not in the vocabulary"),
        (lambda s: s.encode([[]]), plm.ArgumentError, "row 0 is empty"),
        (lambda s: s.encode([[1] * 25]), plm.ArgumentError, "a row has 25 tokens, and the model 24"),
        (lambda s: s.generate([[1, -1]]), plm.IndexRangeError, "prompt 0: the id -1"),
        (lambda s: s.generate([[1] * 20], max_new_tokens=9), plm.ArgumentError, "at most 5 new ones fit"),
        (lambda s: s.generate([[1]], mood="bright"), plm.ArgumentError, "no option 'mood'"),
        (lambda s: s.classify([[1]]), plm.ArgumentError, "no program 'classify'"),
        (lambda s: s.encode("text"), plm.ArgumentError, "takes ids: it has no tokenizer"),
    ],
)
def test_bad_input_is_told(call, error, message, tmp_path):
    with pytest.raises(error, match=message):
        call(opened(generating_models.model("gpt2"), tmp_path))
