import math

import numpy as np
import plmcore as plm
import pytest
from plmcore.data import Corpus
from plmcore.train import held_out
from small import Counting, gpt2

DOCUMENTS = [np.arange(7), np.arange(5), np.arange(9), np.arange(4)]
SENTENCES = [[3, 4], [5], [2, 2, 5], [4]]


@pytest.fixture
def corpus():
    return Corpus.from_ids(DOCUMENTS, 10, SENTENCES)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.17, 0.3, 0.5, 0.77, 0.99])
def test_the_two_parts_are_the_whole(corpus, share):
    first, second = held_out.split(corpus, share)
    if second is None:
        assert first is corpus
        return
    assert np.concatenate([first.ids, second.ids]).tolist() == corpus.ids.tolist()
    assert len(second.ids) == int(25 * share)
    assert first.fingerprint != second.fingerprint != corpus.fingerprint
    for part in (first, second):
        for offsets in (part.sentences, part.documents):
            assert offsets[0] == 0 and offsets[-1] == len(part.ids) and (np.diff(offsets) > 0).all()
        assert part.sentences[part.document_sentences].tolist() == part.documents.tolist()


def test_documents_inside_a_part_are_those_of_the_corpus(corpus):
    _, second = held_out.split(corpus, 0.5)  # the last 12: 8 of the third document and all of the fourth
    assert [second[i].tolist() for i in range(len(second))] == [list(range(1, 9)), list(range(4))]
    assert np.diff(second.sentences).tolist() == [1, 2, 5, 4]


def test_corpora_that_belong_together_are_cut_between_documents(corpus):
    other = Corpus.from_ids([np.arange(n) for n in (1, 2, 3, 4)], 10)
    (a, b), (c, d) = held_out.split_documents([corpus, other], 0.5)
    assert [len(x) for x in (a, b, c, d)] == [2, 2, 2, 2]
    assert c[0].tolist() == list(range(9)) and d[1].tolist() == list(range(4))
    assert held_out.split_documents([corpus, other], 0.1)[1] is None
    with pytest.raises(plm.ArgumentError, match=r"as many documents each, got \[1, 4\]"):
        held_out.split_documents([corpus, Corpus.from_ids([[1]], 10)], 0.5)


def test_shares(corpus):
    assert held_out.split(corpus, 0.0) == (corpus, None)
    for share in (1.0, -0.1, 7):
        with pytest.raises(plm.ArgumentError, match=r"held_out must be in \[0, 1\)"):
            held_out.split(corpus, share)


def test_the_loss_is_the_mean_over_labels_of_all_batches():
    model = gpt2().eval()
    batches = Counting(3, ragged=True)
    found = held_out.HeldOutLoss(batches, 4)(model)
    total = labels = 0.0
    for i in range(4):
        ids, goal = batches[i]["input_ids"], batches[i]["labels"][:, 1:]
        logits = model(plm.Tensor(ids)).logits.numpy()[:, :-1].astype(np.float64)
        logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        kept = goal != -100
        total -= np.take_along_axis(logp, np.where(kept, goal, 0)[..., None], -1)[..., 0][kept].sum()
        labels += kept.sum()
    assert found["loss"] == pytest.approx(total / labels, rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(total / labels), rel=1e-4)


def test_nothing_to_predict():
    class Empty(Counting):
        def __getitem__(self, step):
            batch = super().__getitem__(step)
            return batch | {"labels": np.full_like(batch["labels"], -100)}

    with pytest.raises(plm.ArgumentError, match="nothing to predict"):
        held_out.HeldOutLoss(Empty(), 2)(gpt2())
