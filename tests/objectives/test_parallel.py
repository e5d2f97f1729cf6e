import fakes
import numpy as np
import plmcore as plm
import pytest
from plmcore.data import Corpus
from plmcore.objectives import ContrastivePairs, Translation, info_nce, pairwise_loss

T5, BERT = fakes.Numbers("t5"), fakes.Numbers()


def sides(n=30, seed=0):
    rng = np.random.default_rng(seed)
    documents = [[rng.integers(20, 1000, rng.integers(1, 40)) for _ in range(n)] for _ in range(2)]
    return documents, [Corpus.from_ids(d, T5.vocab_size) for d in documents]


@pytest.mark.parametrize("reverse", [False, True])
def test_translation(reverse):
    documents, corpora = sides()
    objective = Translation(*corpora, T5, BERT, length=21, reverse=reverse)
    batch = objective.batch(np.arange(30), seed=0, epoch=0)
    for source, target, ids, labels in zip(*documents, batch["input_ids"], batch["labels"]):
        source = source[:20][::-1] if reverse else source[:20]
        assert ids[ids != T5.pad_token_id].tolist() == [*source.tolist(), T5.eos_token_id]
        assert labels[labels != -100].tolist() == BERT.build(target[:19])[0].tolist()
    lengths = [max(min(len(a), 20) + 1, min(len(b), 19) + 2) for a, b in zip(*documents)]
    assert objective.lengths(0).tolist() == lengths


def test_translation_needs_pairs():
    _, (a, b) = sides()
    with pytest.raises(ValueError, match="as many documents, got 30 and 1"):
        Translation(a, Corpus.from_ids([[20]], 1000), T5)
    with pytest.raises(ValueError, match="length 1 leaves no room beside 1 special tokens"):
        Translation(a, b, T5, length=1)


def test_contrastive_pairs_of_sentences():
    corpus = fakes.corpus(BERT, documents=50)
    sentences = np.split(np.asarray(corpus.ids, np.int64), corpus.sentences[1:-1])
    document = {
        tuple(s): d
        for d in range(50)
        for s in sentences[corpus.document_sentences[d] : corpus.document_sentences[d + 1]]
    }
    objective = ContrastivePairs(corpus, BERT, negatives=True)
    seen = set()
    for epoch in range(5):
        batch = objective.batch(np.arange(50), seed=0, epoch=epoch)
        for d, rows in enumerate(zip(*(batch[p + "input_ids"] for p in ("", "positive_", "negative_")))):
            x, positive, negative = (tuple(fakes.text_of(row, BERT)) for row in rows)
            assert document[x] == document[positive] == d != document[negative] and x != positive
            seen.add(document[negative])
    assert len(seen) > 40
    assert not any(
        k.startswith("negative") for k in ContrastivePairs(corpus, BERT).batch([0], seed=0, epoch=0)
    )


def test_contrastive_pairs_of_two_corpora():
    documents, (a, b) = sides()
    objective = ContrastivePairs(a, BERT, others=b, negatives=True)
    batch = objective.batch(np.arange(30), seed=0, epoch=0)
    for i in range(30):
        x, y, z = (fakes.text_of(batch[p + "input_ids"][i], BERT) for p in ("", "positive_", "negative_"))
        assert x == documents[0][i].tolist() and y == documents[1][i].tolist()
        assert z in [d.tolist() for k, d in enumerate(documents[1]) if k != i]


def test_contrastive_pairs_need_them():
    single = Corpus.from_ids([[20], [21]], 1000)
    with pytest.raises(ValueError, match="no document of two sentences; pass `others`"):
        ContrastivePairs(single, BERT)
    with pytest.raises(ValueError, match="the corpora need as many documents, got 2 and 1"):
        ContrastivePairs(single, BERT, others=Corpus.from_ids([[20]], 1000))
    with pytest.raises(ValueError, match="the corpus has one alone"):
        ContrastivePairs(Corpus.from_ids([[20, 21]], 1000, [[1, 1]]), BERT, negatives=True)


def test_losses():
    rng = np.random.default_rng(0)
    p, n = rng.normal(0, 3, (2, 50)).astype(np.float32)
    expected = -np.log(np.exp(p) / (np.exp(p) + np.exp(n))).mean()
    assert abs(pairwise_loss(plm.Tensor(p), plm.Tensor(n)).item() - expected) < 1e-5
    assert pairwise_loss(plm.Tensor(p * 0 - 500), plm.Tensor(p * 0 + 500)).item() == 1000  # no overflow
    x, y = rng.normal(0, 1, (2, 8, 5)).astype(np.float32)
    scores = x @ y.T / 0.5
    expected = (np.log(np.exp(scores).sum(1)) - np.diag(scores)).mean()
    assert abs(info_nce(plm.Tensor(x), plm.Tensor(y), 0.5).item() - expected) < 1e-5
