"""A search runs any model by its state: an LSTM, a memory, keys and values."""

import numpy as np
import plmcore as plm
import pytest
from generate.test_search import plain_beam
from generating_models import EOS, MODELS, V, model
from plmcore import Tensor, nn
from plmcore._core import Search
from plmcore.generate.steps import Steps, steps_of
from plmcore.models import bert
from toy_lstm import ToyLSTM
from toy_search import options, search

PROMPTS = [[4, 2, 7], [5], [3, 9, 1], [8, 8], [6]]


class Whole:
    """The LSTM over whole sequences, without a carried state, for the loops of toy_search."""

    def __init__(self, lm):
        self.lm = lm

    def logits(self, ids):
        with plm.no_grad():
            return self.lm(Tensor(np.array([ids])))[0].numpy()[0, -1]

    def log_probabilities(self, ids):
        x = self.logits(ids).astype(np.float64)
        return x - x.max() - np.log(np.exp(x - x.max()).sum())


def searched(lm, prompts, rules):
    """The real search over steps with a state."""
    s = Search(prompts, rules)
    steps = Steps(lm, [np.array(p) for p in prompts], rules.max_new_tokens)
    with nn.inference():
        while not s.done:
            s.accept(steps(s))
    return [s.result(i) for i in range(len(prompts))]


@pytest.mark.parametrize(
    "rules", [dict(), dict(beams=4, returns=3), dict(sample=True, returns=2, seeds=[3] * 5)]
)
def test_an_lstm_makes_text(rules):
    """As the loop without a state does, over prompts of several lengths that end at several times."""
    lm = ToyLSTM(11, 8, seed=5)
    rules = options(**rules, max_new_tokens=9, eos=[0], token_scores=True)
    found, expected = searched(lm, PROMPTS, rules), search(Whole(lm), PROMPTS, rules)
    assert len({len(c.tokens) for row in found for c in row}) > 1
    for ours, theirs in zip(found, expected):
        assert [c.tokens for c in ours] == [c.tokens for c in theirs]
        np.testing.assert_allclose([c.score for c in ours], [c.score for c in theirs], atol=1e-5)


def test_an_lstm_with_beams_equals_the_plain_loop():
    lm = ToyLSTM(11, 8, seed=5)
    rules = options(beams=3, returns=3, max_new_tokens=7, eos=[0])
    for prompt, found in zip(PROMPTS, searched(lm, PROMPTS, rules)):
        expected = plain_beam(Whole(lm), prompt, 3, 7, 1.0, False)
        assert [c.tokens for c in found] == [ids for _, ids in expected]


@pytest.mark.parametrize("family", MODELS)
def test_what_the_search_carries_is_a_state(family):
    lm = model(family)
    sources = [np.array([3, 4, 5]), np.array([6, 7])]
    prompts, sources = ([np.array([2])] * 2, sources) if lm.head == "seq2seq-lm" else (sources, None)
    rules = options(beams=3, max_new_tokens=6, eos=[EOS])
    s, steps = Search([p.tolist() for p in prompts], rules), steps_of(lm.model, prompts, sources, 6)
    with nn.inference():
        while not s.done:
            logits = steps(s)
            assert logits.shape[-1] == V
            for places, state in steps.groups:
                assert isinstance(state, nn.State) and state.batch == len(places) and state.nbytes > 0
            s.accept(logits)


def test_a_model_without_text():
    lm = plm.from_config(bert.BertConfig(vocab_size=9, hidden_size=12, num_hidden_layers=1))
    with pytest.raises(plm.ArgumentError, match="makes no text: load a directory with head='causal-lm'"):
        steps_of(lm.model, [np.array([1])], None, 3)
