import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor
from plmcore._core import EarlyStopping, Search
from toy_search import Notes, Table, all_sequences, options, search


def penalised(form, alpha, score, n):
    return score / (((5 + n) / 6) ** alpha if form == "gnmt" else n**alpha)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("form, alpha", [("length", 1.0), ("length", 0.0), ("gnmt", 0.6), ("length", 2.5)])
def test_a_beam_as_wide_as_the_space_finds_the_best(form, alpha, seed):
    model, prompt, T = Table(3, seed), [1, 2], 4
    best = max(
        all_sequences(3, T), key=lambda ids: penalised(form, alpha, model.score(prompt, ids), len(ids))
    )
    rules = dict(beams=81, max_new_tokens=T, eos=[0], length_penalty=alpha, gnmt=form == "gnmt")
    (found,) = search(model, [prompt], options(**rules, early_stopping=EarlyStopping.never))[0]
    assert found.tokens == best
    assert found.score == pytest.approx(
        penalised(form, alpha, model.score(prompt, best), len(best)), abs=1e-5
    )


@pytest.mark.parametrize("seed", range(20))
def test_greedy_takes_the_best_token_each_time(seed):
    model = Table(7, seed)
    (found,) = search(model, [[3]], options(max_new_tokens=12, eos=[0], token_scores=True))[0]
    ids, scores = [3], []
    while len(ids) < 13 and (len(ids) == 1 or ids[-1] != 0):
        scores.append(model.log_probabilities(ids).max())
        ids.append(int(model.logits(ids).argmax()))
    assert found.tokens == ids[1:]
    np.testing.assert_allclose(found.token_scores, scores, atol=1e-5)
    assert found.score == pytest.approx(sum(scores), abs=1e-4)


def plain_beam(model, prompt, k, T, alpha, early, eos=0):
    """The search in a few lines of Python: transformers' rules."""
    alive, done = [(0.0, list(prompt))], []
    for n in range(1, T + 1):
        grown = [(s + p, [*ids, t]) for s, ids in alive for t, p in enumerate(model.log_probabilities(ids))]
        grown = sorted(grown, key=lambda x: -x[0])[: 2 * k]
        ends = [ids[-1] == eos or n == T for _, ids in grown]
        done += [(s / n**alpha, ids[len(prompt) :]) for (s, ids), e in list(zip(grown, ends))[:k] if e]
        done = sorted(done, key=lambda x: -x[0])[:k]
        alive = [x for x, e in zip(grown, ends) if not e][:k]
        if not alive:
            break
        if len(done) == k:
            possible = alive[0][0] / (T if early == "never" and alpha > 0 else n) ** alpha
            if early is True or possible <= done[-1][0]:
                break
    return done


STOPS = {False: EarlyStopping.no, True: EarlyStopping.yes, "never": EarlyStopping.never}


@pytest.mark.parametrize("early", STOPS)
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0, -0.5])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_beams_follow_the_rules(k, alpha, early):
    for seed in range(8):
        model, prompt = Table(9, seed), [4, 2]
        rules = options(
            beams=k,
            returns=k,
            max_new_tokens=7,
            eos=[0],
            length_penalty=alpha,
            early_stopping=STOPS[early],
            token_scores=True,
        )
        found = search(model, [prompt], rules)[0]
        expected = plain_beam(model, prompt, k, 7, alpha, early)
        assert [f.tokens for f in found] == [ids for _, ids in expected]
        np.testing.assert_allclose([f.score for f in found], [s for s, _ in expected], atol=1e-5)
        for f in found:
            assert sum(f.token_scores) / len(f.tokens) ** alpha == pytest.approx(f.score, abs=1e-4)


RULES = {
    "greedy": dict(),
    "beams": dict(beams=4, returns=2),
    "groups": dict(beams=4, groups=2, diversity=0.7, returns=3),
    "samples": dict(sample=True, returns=3, top_k=5, top_p=0.9),
    "penalties": dict(
        beams=3, repetition_penalty=1.3, no_repeat_ngram=2, min_new_tokens=3, bad_words=[[3], [5, 6]]
    ),
    "samples with penalties": dict(
        sample=True, returns=2, repetition_penalty=1.3, no_repeat_ngram=2, temperature=0.7
    ),
}


@pytest.mark.parametrize("kind", RULES)
def test_a_prompt_does_not_depend_on_the_others(kind):
    model, rng = Table(11, 3), np.random.default_rng(1)
    prompts = [list(rng.integers(1, 11, rng.integers(1, 6))) for _ in range(7)]
    rules = dict(max_new_tokens=9, eos=[0], token_scores=True) | RULES[kind]
    together = search(model, prompts, options(**rules, seeds=list(range(7))))
    for i, prompt in enumerate(prompts):
        (alone,) = search(model, [prompt], options(**rules, seeds=[i]))
        assert [f.tokens for f in alone] == [f.tokens for f in together[i]]
        np.testing.assert_allclose([f.score for f in alone], [f.score for f in together[i]], atol=1e-5)


def test_samples_have_the_frequencies_of_the_distribution():
    model, N = Table(6, 2, scale=1.0), 20000
    (found,) = search(model, [[1, 4]], options(sample=True, returns=N, max_new_tokens=1, seeds=[5]))
    counts = np.bincount([f.tokens[0] for f in found], minlength=6)
    expected = N * np.exp(model.log_probabilities([1, 4]))
    assert ((counts - expected) ** 2 / expected).sum() < 20.5  # chi-squared, 5 degrees of freedom, p = 0.001
    (again,) = search(model, [[1, 4]], options(sample=True, returns=50, max_new_tokens=1, seeds=[5]))
    assert [f.tokens for f in again] == [f.tokens for f in found[:50]]


@pytest.mark.parametrize(
    "rules, kept",
    [
        (dict(top_k=2), [3, 1]),
        (dict(top_p=0.5), [3]),
        (dict(top_p=0.65), [3, 1]),
        (dict(top_k=3, top_p=0.99), [3, 1, 0]),
        (dict(typical_p=0.2), [1]),
        (dict(typical_p=0.5), [1, 3]),
        (dict(typical_p=0.8), [1, 3, 0]),
        (dict(temperature=0.01), [3]),
        (dict(temperature=1e-37), [3]),
        (dict(temperature=1e-37, typical_p=0.5), [3]),
        (dict(top_p=1e-300), [3]),
        (dict(typical_p=1e-300), [1]),
    ],
)
def test_what_sampling_draws_from(rules, kept):
    """Probabilities 0.15, 0.25, 0.1, 0.5: the entropy is 1.21, the surprises 1.9, 1.39, 2.3, 0.69."""

    class Fixed:
        def logits(self, ids):
            return np.log(np.array([0.15, 0.25, 0.1, 0.5], np.float32))

    (found,) = search(Fixed(), [[0]], options(sample=True, returns=400, max_new_tokens=1, seeds=[1], **rules))
    assert {f.tokens[0] for f in found} == set(kept)


def test_a_very_low_temperature_takes_the_best_and_not_the_last():
    for logits in ([1, 300, 2, -50], [-90, -60, -np.inf, -80], [5, 5, -np.inf, 4]):
        scores = Tensor(np.array([logits], np.float32))
        s = Search([[0]], options(sample=True, returns=1, max_new_tokens=1, seeds=[1], temperature=2e-38))
        s.accept(scores)
        assert logits[s.result(0)[0].tokens[0]] == max(logits)


def test_penalties_that_leave_float32_are_named():
    model = Table(5, 0)
    with pytest.raises(
        ValueError, match="repetition_penalty = 1e-37 takes the score .* of token .* out of the range"
    ):
        search(Table(5, 0, scale=300), [[0, 1, 2, 3, 4]], options(max_new_tokens=3, repetition_penalty=1e-37))
    for penalty in (1e4, -1e4):
        with pytest.raises(
            ValueError, match=r"length_penalty = -?10000 divides the score of 2 tokens by (inf|0),"
        ):
            search(model, [[1]], options(beams=2, max_new_tokens=5, length_penalty=penalty))
    s = Search([[1]], options(max_new_tokens=1, sample=True, seeds=[0]))
    with pytest.raises(ValueError, match="logits for prompt 0 hold inf"):
        s.accept(Tensor(np.array([[1, np.inf, 2, 3, 4]], np.float32)))


def test_groups_differ():
    model = Table(12, 5, scale=3)
    first = [
        f.tokens[0]
        for f in search(
            model, [[1]], options(beams=4, groups=4, diversity=100.0, returns=4, max_new_tokens=3)
        )[0]
    ]
    assert len(set(first)) == 4
    alike = search(model, [[1]], options(beams=4, groups=4, returns=4, max_new_tokens=3))[0]
    assert len({tuple(f.tokens) for f in alike}) == 1


def test_rules_of_tokens():
    model = Table(9, 4)
    for beams in (1, 4):
        found = search(model, [[3, 4]], options(beams=beams, max_new_tokens=20, no_repeat_ngram=2))[0][0]
        pairs = list(zip([3, 4, *found.tokens], [4, *found.tokens]))
        assert len(set(pairs)) == len(pairs)
        found = search(model, [[3, 4]], options(beams=beams, max_new_tokens=10, bad_words=[[5], [6, 7]]))[0][
            0
        ]
        text = [4, *found.tokens]
        assert 5 not in text and (6, 7) not in list(zip(text, text[1:]))
        found = search(
            model, [[3, 4]], options(beams=beams, max_new_tokens=10, min_new_tokens=6, eos=list(range(4)))
        )[0][0]
        assert len(found.tokens) >= 6
        found = search(
            model, [[3]], options(beams=beams, max_new_tokens=5, forced_first=[8], forced_last=[7])
        )[0][0]
        assert found.tokens[0] == 8 and found.tokens[-1] == 7 and len(found.tokens) == 5
        found = search(
            model,
            [[3]],
            options(beams=beams, max_new_tokens=8, allowed=lambda i, ids: [(ids[-1] + 1) % 9, 2]),
        )[0][0]
        assert all(b in ((a + 1) % 9, 2) for a, b in zip([3, *found.tokens], found.tokens))
        found = search(
            model, [[3]], options(beams=beams, max_new_tokens=8, stop=lambda i, ids: len(ids) == 4)
        )[0][0]
        assert len(found.tokens) == 3


def test_prompts_that_are_done_leave():
    model, sizes = Table(9, 11), []
    prompts = [[i] for i in range(1, 9)]
    found = search(model, prompts, options(max_new_tokens=30, eos=[0]), lambda rows: sizes.append(len(rows)))
    assert sizes[0] == 8 and sizes == sorted(sizes, reverse=True) and sizes[-1] < 8
    lengths = [len(f[0].tokens) for f in found]
    assert sizes == [sum(n > step for n in lengths) for step in range(max(lengths))]


def test_the_example_of_the_notes():
    """Width 2: a and the; then a cat, a dog, the cat, the dog, of which the latter two go on."""
    words = Notes.WORDS
    seen = []
    (found,) = search(
        Notes(), [[0]], options(beams=2, returns=2, max_new_tokens=3, eos=[0], length_penalty=0.0),
        lambda rows: seen.append([" ".join(words[t] for t in ids[1:]) for ids in rows[0]]),
    )  # fmt: skip
    assert seen == [[""], ["the", "a"], ["the cat", "the dog"]]
    assert [[words[t] for t in f.tokens] for f in found] == [["the", "cat", "EOS"], ["the", "dog", "EOS"]]


@pytest.mark.parametrize(
    "rules, message",
    [
        (dict(max_new_tokens=0), "max_new_tokens must be at least 1, got 0"),
        (dict(min_new_tokens=30), "min_new_tokens must be at most max_new_tokens = 20, got 30"),
        (dict(beams=0), "num_beams must be at least 1, got 0"),
        (dict(beams=4, groups=3), "num_beams must be a multiple of num_beam_groups = 3, got 4"),
        (dict(diversity=0.5), "diversity_penalty needs num_beam_groups"),
        (dict(beams=2, sample=True, seeds=[0]), "sampling has no beams"),
        (dict(returns=2), "num_return_sequences must be at most num_beams = 1"),
        (dict(temperature=0.0), "temperature must be more than 0"),
        (dict(temperature=1e-46), "temperature = 1e-46 is out of the range of float32"),
        (dict(temperature=1e-39), "temperature = 1e-39 is out of the range of float32"),
        (dict(temperature=1e39), r"temperature = 1e\+39 is out of the range of float32"),
        (dict(temperature=float("inf")), "temperature = inf is out of the range"),
        (dict(temperature=float("nan")), "temperature must be more than 0"),
        (dict(repetition_penalty=1e-50), "repetition_penalty = 1e-50 is out of the range of float32"),
        (dict(repetition_penalty=1e50), r"repetition_penalty = 1e\+50 is out of the range of float32"),
        (
            dict(beams=2, groups=2, diversity=1e-60),
            "diversity_penalty = 1e-60 is out of the range of float32",
        ),
        (
            dict(beams=2, groups=2, diversity=1e60),
            r"diversity_penalty = 1e\+60 is out of the range of float32",
        ),
        (dict(beams=2, length_penalty=float("nan")), "length_penalty must be finite, got nan"),
        (dict(top_p=0.0), r"top_p must be in \(0, 1\], got 0"),
        (dict(typical_p=1.5), "typical_p"),
        (dict(top_k=-1), "top_k must be at least 0"),
        (dict(repetition_penalty=0.0), "repetition_penalty must be more than 0"),
        (dict(bad_words=[[]]), "an empty one"),
        (dict(eos=[-1]), "eos_token_id must be at least 0"),
        (dict(sample=True, seeds=[1, 2]), "one number for each of the 1 prompts, got 2"),
    ],
)
def test_contradictions(rules, message):
    with pytest.raises(ValueError, match=message):
        Search([[1]], options(**rules))


def test_bad_logits_and_callbacks_leave_a_usable_search():
    model = Table(5, 0)
    for rules in (dict(), dict(beams=2), dict(beams=2, no_repeat_ngram=3), dict(sample=True, seeds=[0])):
        s = Search([[1]], options(max_new_tokens=1, **rules))
        with pytest.raises(ValueError, match="hold NaN"):
            s.accept(Tensor(np.array([[1, np.nan, 2, 3, 4]], np.float32)))
        with pytest.raises(ValueError, match=r"logits must be \[1, 1, V\]"):
            s.accept(Tensor(np.zeros((2, 5), np.float32)))
        s.accept(Tensor(model.logits([1])[None]))
        assert s.done and len(s.result(0)[0].tokens) == 1
        with pytest.raises(ValueError, match="takes no more logits"):
            s.accept(Tensor(model.logits([1])[None]))
    with pytest.raises(ValueError, match="no token may follow prompt 0"):
        search(model, [[1]], options(bad_words=[[t] for t in range(5)]))
    with pytest.raises(ValueError, match="not in the vocabulary of 5"):
        search(model, [[1]], options(bad_words=[[7]]))
    with pytest.raises(ValueError, match="allows no token"):
        search(model, [[1]], options(allowed=lambda i, ids: []))

    def broken(prompt, ids):
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        search(model, [[1]], options(allowed=broken))
    with pytest.raises(KeyError, match="inside"):
        search(model, [[1]], options(stop=broken))
    with pytest.raises(ValueError, match="prompt 1 is empty"):
        Search([[1], []], options())
    with pytest.raises(IndexError):
        Search([[1]], options()).result(1)


def test_other_dtypes_of_logits():
    for dtype in ("float64", "bfloat16"):
        s = Search([[1]], options(max_new_tokens=1))
        s.accept(plm.ops.cast(Tensor(np.array([[1, 5, 2]], np.float32)), dtype))
        assert s.result(0)[0].tokens == [1]
