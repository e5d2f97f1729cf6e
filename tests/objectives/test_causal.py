import fakes
import numpy as np
from plmcore.data import Batches
from plmcore.objectives import CausalLM

GPT = fakes.Numbers("gpt")
IGNORED = -100


def test_windows_are_the_text_with_an_end_token_after_each_document():
    corpus = fakes.corpus(GPT)
    objective = CausalLM(corpus, GPT, length=50)
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    expected = fakes.stream(corpus, GPT.eos_token_id)
    assert batch["input_ids"].ravel().tolist() == expected[: 50 * len(objective)].tolist()
    assert len(expected) - 50 * len(objective) < 50
    assert np.array_equal(batch["labels"], batch["input_ids"])  # the model moves them
    assert "attention_mask" not in batch and objective.lengths(0) is None


def test_documents_have_special_tokens_and_padding():
    bart = fakes.Numbers("bart")
    corpus = fakes.corpus(bart)
    objective = CausalLM(corpus, bart, length=30, packing="documents")
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    found = [i for row in batch["input_ids"] for i in fakes.text_of(row, bart)]
    assert found == fakes.stream(corpus).tolist()
    assert (batch["input_ids"][:, 0] == bart.bos_token_id).all()
    real = batch["attention_mask"] == 1
    assert (batch["labels"][~real] == IGNORED).all() and not real.all()
    assert np.array_equal(batch["labels"][real], batch["input_ids"][real])


def test_streams_carry_on_from_batch_to_batch():
    corpus = fakes.corpus(GPT)
    objective = CausalLM(corpus, GPT, length=20, streams=6)
    batches = Batches(objective, 6, seed=0, shuffle=False)
    steps = [batches[s] for s in range(batches.steps_per_epoch())]
    rows = np.concatenate([b["input_ids"] for b in steps], 1)  # [6, all windows]
    labels = np.concatenate([b["labels"] for b in steps], 1)
    assert np.array_equal(rows, labels)  # the model moves them, as without streams
    text = fakes.stream(corpus, GPT.eos_token_id)
    part = len(text) // 6
    for r in range(6):
        assert rows[r].tolist() == text[r * part : r * part + rows.shape[1]].tolist()


def test_a_family_without_an_end_token():
    gpt1 = fakes.Numbers("gpt")
    gpt1.eos_token_id = None
    corpus = fakes.corpus(gpt1)
    objective = CausalLM(corpus, gpt1, length=50)
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    assert batch["input_ids"].ravel().tolist() == fakes.stream(corpus)[: 50 * len(objective)].tolist()
