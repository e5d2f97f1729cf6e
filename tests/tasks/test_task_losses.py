import numpy as np
import plmcore as plm
import pytest
from plmcore.tasks import decoder_format, task_losses

IDS = np.array([[5, 6, 7, 8, 9], [9, 8, 7, 0, 0]])
MASK = (IDS != 0).astype(np.int64)


@pytest.fixture
def model():
    plm.seed(1)
    config = dict(model_type="openai-gpt", n_embd=16, n_layer=2, n_head=2, n_positions=16, pad_token_id=0)
    return plm.from_config(config, "sequence-classification", vocab_size=20, num_labels=3).eval().model


def inputs(**more):
    return {k: plm.Tensor(v) for k, v in {"input_ids": IDS, "attention_mask": MASK, **more}.items()}


def test_the_auxiliary_loss_is_that_of_the_language_model(model):
    labels = np.array([2, 0])
    alone = model(**inputs(labels=labels))
    out, loss = task_losses.DecoderLoss(model, 0.5).plain(inputs(labels=labels))
    np.testing.assert_allclose(out.logits.numpy(), alone.logits.numpy(), atol=1e-6)
    head = plm.from_config(model.config, "causal-lm").model
    head.load_state_dict({k: v for k, v in model.state_dict().items() if k != "score.weight"})
    text = head.eval()(**inputs(labels=np.where(MASK == 1, IDS, -100))).loss.item()
    assert loss.item() == pytest.approx(alone.loss.item() + 0.5 * text, abs=1e-5)
    assert out.loss.item() == pytest.approx(alone.loss.item(), abs=1e-6)


def test_both_orders_add_their_last_states(model):
    other = IDS[:, ::-1].copy()
    other[1] = [7, 8, 9, 0, 0]
    both = {"input_ids": np.stack([IDS, other], 1), "attention_mask": np.stack([MASK, MASK], 1)}
    out, loss = task_losses.DecoderLoss(model, both=True).plain({k: plm.Tensor(v) for k, v in both.items()})
    first, second = (model(**inputs(input_ids=ids)).logits.numpy() for ids in (IDS, other))
    np.testing.assert_allclose(out.logits.numpy(), first + second, atol=1e-5)  # the linear layer has no bias
    assert loss is None


def test_parts_weigh_as_their_labels_do(model):
    loss = task_losses.TaskLoss(model)
    parts = [{"input_ids": IDS[:n], "labels": np.zeros(n, np.int64)} for n in (1, 2)]
    assert loss.shares(parts) == [(1 / 3, 1 / 3), (2 / 3, 2 / 3)]
    whole = loss(inputs(labels=np.array([1, 2])), (1.0, 1.0))[0].item()
    rows = [
        {k: v[i : i + 1] for k, v in (("input_ids", IDS), ("attention_mask", MASK), ("labels", np.array([1, 2])))}
        for i in (0, 1)
    ]
    assert sum(loss(r, (0.5, 0.5))[0].item() for r in rows) == pytest.approx(whole, abs=1e-5)


def test_an_encoder_has_no_auxiliary_loss(directory):
    with pytest.warns(UserWarning, match="drawn at random"):
        bert = plm.load(directory("bert"), head="sequence-classification").model
    with pytest.raises(ValueError, match="for decoders that classify, and this is bert"):
        task_losses.DecoderLoss(bert, 0.5)


def test_a_decoder_gets_special_tokens(directory, tmp_path):
    lm = plm.load(directory("gpt2"))
    before = lm.model.state_dict()["body.embeddings.tokens.weight"].numpy().copy()
    decoder_format.give_format(lm.tokenizer)
    grown = decoder_format.grown(lm.model, lm.tokenizer)
    table = grown.state_dict()["body.embeddings.tokens.weight"].numpy()
    assert table.shape == (len(before) + 4, 32) and (table[: len(before)] == before).all()
    lm.model = grown
    lm.save(tmp_path / "saved")
    again = plm.load(tmp_path / "saved")
    start, between, end = (again.tokenizer.id_of(t) for t in ("_start_", "_delimiter_", "_classify_"))
    ids = again.tokenizer("the cat", "the dog").input_ids.tolist()
    assert ids[0] == start and ids[-1] == end and ids.count(between) == 1
    assert again.config.pad_token_id == again.tokenizer.pad_token_id is not None
