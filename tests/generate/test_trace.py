import types

import numpy as np
import pytest
from generate.test_run import folder  # noqa: F401 - a fixture
from generating_models import EOS, model
from plmcore import load
from plmcore._core import Search
from plmcore.generate.trace import traced
from toy_search import Notes, Table, options, searched

# Of the notes; EOS is no text.
WORDS = types.SimpleNamespace(vocab_size=5, special_ids=np.array([0]), token_of=lambda i: Notes.WORDS[i])


def words(tokenizer, ids):
    return " ".join(Notes.WORDS[i] for i in ids if i)


def notes_trace():
    rules = dict(beams=2, returns=2, max_new_tokens=4, eos=[0], length_penalty=0.0, trace=True)
    return traced(searched(Notes(), [[0]], options(**rules)), 0, [0], WORDS, words)


def by_fate(step):
    found = {}
    for node in step:
        text = " ".join(Notes.WORDS[t] for t in node.tokens())
        found.setdefault(node.fate, {})[text] = pytest.approx(np.exp(node.score), abs=1e-6)
    return found


def test_the_example_of_the_notes():
    """Width 2. a and the are kept; of a cat, a dog, the cat and the dog the latter two are; both end."""
    trace = notes_trace()
    first, second, third = map(by_fate, trace.steps)
    assert first == {"kept": {"the": 0.55, "a": 0.45}}
    assert second == {
        "kept": {"the cat": 0.55 * 0.52, "the dog": 0.55 * 0.48},
        "dropped": {"a cat": 0.45 * 0.55, "a dog": 0.45 * 0.45},
    }
    assert third == {
        "finished": {"the cat EOS": 0.286 * 0.9, "the dog EOS": 0.264 * 0.8},
        "kept": {"the dog a": 0.264 * 0.2, "the cat a": 0.286 * 0.1},
    }
    assert trace.result_texts == ["the cat", "the dog"]
    assert [n.text for n in trace.steps[1]] == [" cat", " dog", " cat", " dog"]
    best = trace.results[0]
    assert (best.step, best.place, best.text) == (2, 0, "EOS") and best.parent is trace.steps[1][0]
    assert best.final_score == pytest.approx(np.log(0.286 * 0.9), abs=1e-5)


@pytest.mark.parametrize(
    "rules",
    [
        dict(),
        dict(beams=4, returns=3),
        dict(beams=4, groups=2, diversity=0.7, returns=4),
        dict(sample=True, returns=3, top_k=4, seeds=[1, 2, 3]),
        dict(beams=3, no_repeat_ngram=2, stop=lambda i, ids: ids[-1] == 5),
    ],
    ids=["greedy", "beams", "groups", "samples", "rules"],
)
def test_a_trace_tells_what_the_search_did(rules):
    """It changes no result; what goes on is what is continued; scores add up to those of the results."""
    model, prompts = Table(9, 3), [[1, 2], [4], [7, 3, 2]]
    rules = dict(max_new_tokens=7, eos=[0], token_scores=True) | rules
    plain, s = (
        searched(model, prompts, options(**rules)),
        searched(model, prompts, options(**rules, trace=True)),
    )
    k = rules.get("beams", 1) // rules.get("groups", 1)
    for i, prompt in enumerate(prompts):
        assert [c.tokens for c in s.result(i)] == [c.tokens for c in plain.result(i)]
        assert [c.score for c in s.result(i)] == [c.score for c in plain.result(i)]
        trace = traced(s, i, prompt, None, None)
        for nodes in trace.steps:
            for group in {n.group for n in nodes}:
                own = [n for n in nodes if n.group == group]
                assert sum(n.fate == "kept" for n in own) <= k
                if k == 1 and "beams" not in rules:
                    assert sum(n.fate != "dropped" for n in own) == 1
            for n in nodes:
                assert n.parent is None or (n.parent.fate == "kept" and n.parent.group == n.group)
                assert (n.parent is None) == (n.step == 0)
                assert (n.final_score is None) == (n.fate != "finished")
        for end, found in zip(trace.results, s.result(i), strict=True):
            assert end.fate == "finished" and end.tokens() == found.tokens
            assert end.final_score == pytest.approx(found.score, abs=1e-5)
            assert end.score == pytest.approx(sum(found.token_scores), abs=1e-5)
            if "sample" not in rules:
                assert (
                    end.score == pytest.approx(model.score(prompt, found.tokens), abs=1e-4)
                    or "diversity" in rules
                )


def test_greedy_shows_the_runners_up_in_order():
    s = searched(Table(9, 3), [[1, 2]], options(max_new_tokens=3, trace=True))
    nodes = traced(s, 0, [1, 2], None, None).steps[0]
    expected = Table(9, 3).log_probabilities([1, 2])
    assert [n.token for n in nodes] == np.argsort(-expected)[:5].tolist() and nodes[0].fate == "kept"
    np.testing.assert_allclose([n.score for n in nodes], np.sort(expected)[::-1][:5], atol=1e-5)
    assert [n.text for n in nodes] == [str(n.token) for n in nodes]


def test_without_the_option_there_is_no_trace():
    s = Search([[1]], options())
    with pytest.raises(ValueError, match="without the option trace"):
        s.trace(0)
    with pytest.raises(IndexError, match="there are 1 prompts, got number 1"):
        Search([[1]], options(trace=True)).trace(1)
    with pytest.raises(ValueError, match="pass trace=True"):
        model("gpt2").generate([[3, 4]], output_scores=True).html("x.html")


@pytest.mark.parametrize("family", ["gpt2", "t5", "xlnet"])
def test_of_models(family, tmp_path):
    lm = model(family)
    asked = dict(max_new_tokens=5, num_beams=3, num_return_sequences=2, eos_token_id=EOS)
    found = lm.generate([[3, 4, 5], [6, 7]], **asked, trace=True)
    np.testing.assert_array_equal(found.sequences, lm.generate([[3, 4, 5], [6, 7]], **asked))
    assert [p.prompt_text for p in found.trace.prompts] == ["3 4 5", "6 7"] and found.texts is None
    for i, prompt in enumerate(found.trace.prompts):
        assert [n.final_score for n in prompt.results] == pytest.approx(
            found.scores[2 * i : 2 * i + 2].tolist()
        )
    found.html(tmp_path / "beams.html")
    assert (tmp_path / "beams.html").stat().st_size > 5000


def test_of_texts(folder):  # noqa: F811
    found = load(folder).generate("once upon a time", max_new_tokens=4, trace=True)
    (prompt,) = found.trace.prompts
    assert found.trace.kind == "greedy" and prompt.prompt_text == "once upon a time"
    assert found.texts == ["once upon a time " + prompt.result_texts[0]]
