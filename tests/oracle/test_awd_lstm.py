"""AWD-LSTM and ULMFiT's classifier against fastai: outputs, states, gradients, published files."""

import json
import pickle

import numpy as np
import plmcore as plm
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("fastai.text.models.core", reason="fastai.text.models cannot be imported")
from fastai.text.models.awdlstm import AWD_LSTM, awd_lstm_lm_config  # noqa: E402
from fastai.text.models.core import get_language_model, get_text_classifier  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

pytestmark = pytest.mark.oracle
torch.set_num_threads(1)

V = 30
SIZES = dict(emb_sz=12, n_hid=20, n_layers=3)
NEAR = 1e-5


def scaled(model, seed):
    """Weights of a size at which an error shows."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in {id(p): p for p in model.parameters()}.values():
            p.copy_(torch.randn_like(p) * (0.5 if p.ndim > 1 else 0.3) + (1.0 if p.ndim == 0 else 0.0))
        for m in model.modules():
            if isinstance(m, torch.nn.BatchNorm1d):
                m.running_mean.uniform_(-1, 1), m.running_var.uniform_(0.5, 2)
    return model.eval()


def language_model(seed=0, **config):
    return scaled(get_language_model(AWD_LSTM, V, config={**awd_lstm_lm_config, **SIZES, **config}), seed)


def saved(model, folder, head, **config):
    folder.mkdir(exist_ok=True)
    tensors = {name: t.detach().float().numpy().copy() for name, t in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    kept = dict(model_type="awd-lstm", architectures=[f"AwdLstmFor{head}"], vocab_size=V, **SIZES, **config)
    (folder / "config.json").write_text(json.dumps(kept))
    return plm.load(folder)


def near(ours, theirs, what="", tolerance=NEAR):
    theirs = theirs.detach().numpy()
    np.testing.assert_allclose(ours.numpy(), theirs, atol=tolerance, rtol=tolerance, err_msg=what)


@pytest.mark.parametrize("options", [{}, dict(tie_weights=False), dict(out_bias=False)])
def test_language_model(tmp_path, options):
    theirs = language_model(**options)
    lm = saved(theirs, tmp_path / "lm", "CausalLM", **options)
    ids = np.random.default_rng(0).integers(0, V, (3, 3, 9))
    theirs.reset()
    state = None
    for window in ids:  # the state goes on
        out, expected = lm(window, state=state), theirs(torch.tensor(window))[0]
        state = out.state
        near(out.logits, expected)
        for layer, (ours, other) in enumerate(zip(state, theirs[0].hidden, strict=True)):
            for name, a, b in zip("hc", ours, other, strict=True):
                near(a, b, f"{name} of layer {layer}")


def test_gradients_of_the_language_model(tmp_path):
    """Without dropout, of the loss with both penalties."""
    none = {key: 0.0 for key in awd_lstm_lm_config if key.endswith("_p")}
    theirs = language_model(**none).train()
    lm = saved(theirs, tmp_path / "lm", "CausalLM", **none).train()
    batch = np.random.default_rng(1).integers(0, V, (4, 8))
    theirs.reset()
    logits, raw, dropped = theirs(torch.tensor(batch[:, :-1]))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(batch[:, 1:]).flatten())
    loss = loss + 2 * dropped.pow(2).mean() + (raw[:, 1:] - raw[:, :-1]).pow(2).mean()
    loss.backward()
    criterion = plm.criteria.Carried(ar=2.0, tar=1.0)
    arrays = {"input_ids": batch, "labels": batch}
    terms, _ = plm.criteria.run(criterion, lm.model, arrays)
    ours = plm.criteria.loss(terms, criterion.counts(arrays))
    near(ours, loss)
    ours.backward()
    grads = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    body = lm.model.body
    pairs = {"0.encoder.weight": body.tokens.weight, "1.decoder.bias": lm.model.decoder.bias}
    for i, block in enumerate(body.blocks):
        pairs[f"0.rnns.{i}.weight_hh_l0_raw"] = block.lstm.layer.weight_hh_l0
        pairs[f"0.rnns.{i}.module.weight_ih_l0"] = block.lstm.layer.weight_ih_l0
    for name, p in pairs.items():
        if name == "0.encoder.weight":  # fastai's padding row gets none from the input
            grads[name][1], p.grad = 0, plm.Tensor(np.where(np.arange(V)[:, None] == 1, 0, p.grad.numpy()))
        near(p.grad, grads[name], name)


def texts(lengths, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(2, V, n) for n in lengths]


def padded(rows):
    width = max(map(len, rows))
    ids, mask = np.ones((2, len(rows), width), np.int64)
    for row, seen, text in zip(ids, mask, rows):
        row[: len(text)], seen[len(text) :] = text, 0
    return ids, mask


def classifier(tmp_path, **options):
    config = {key: 0.0 for key in ("hidden_p", "input_p", "embed_p", "weight_p")}
    config = config if options.pop("without_dropout", False) else {}
    kept = dict(bptt=4, max_len=10, id2label={str(i): f"c{i}" for i in range(3)})
    theirs = scaled(
        get_text_classifier(AWD_LSTM, V, 3, seq_len=4, max_len=10, config=dict(SIZES, **config)), seed=3
    )
    return theirs, saved(theirs, tmp_path / "classifier", "SequenceClassification", **kept, **options)


def test_classifier(tmp_path):
    """Text by text, as fastai's pooling mis-reads texts that are padded by a window; ours in one batch."""
    theirs, lm = classifier(tmp_path)
    rows = texts((1, 3, 4, 5, 9, 10, 11, 13, 17, 23, 24, 40))
    expected = torch.cat([theirs(torch.tensor(row[None]))[0] for row in rows])
    ids, mask = padded(rows)
    near(lm(ids, attention_mask=mask).logits, expected)
    near(lm(ids).logits, expected, "padding told by its id")
    for row, wanted in zip(rows, expected):
        near(lm(row[None]).logits, wanted[None])
    assert expected.std(0).min() > 0.02  # they do differ


def test_backward_classifier(tmp_path):
    theirs, lm = classifier(tmp_path, backward=True)
    rows = texts((1, 5, 12, 24))
    expected = torch.cat([theirs(torch.tensor(row[None, ::-1].copy()))[0] for row in rows])
    ids, mask = padded(rows)
    near(lm(ids, attention_mask=mask).logits, expected)
    near(lm(rows[2][None]).logits, expected[2:3])


def test_training_mode_of_the_classifier(tmp_path):
    """Batch statistics, windows that no gradient crosses, and running statistics; texts of one length."""
    theirs, _ = classifier(tmp_path, without_dropout=True)
    kept = dict(bptt=4, max_len=10, id2label={str(i): f"c{i}" for i in range(3)}, head_p=0.0)
    lm = saved(
        theirs, tmp_path / "c", "SequenceClassification", **kept, classifier_dropouts=[0.0] * 5
    ).train()
    theirs.train()
    for module in theirs.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    rows, labels = np.stack(texts((14,) * 6)), np.array([0, 1, 2, 2, 1, 0])
    logits = theirs(torch.tensor(rows))[0]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(labels))
    loss.backward()
    out = lm(rows, labels=labels)
    near(out.logits, logits), near(out.loss, loss)
    out.loss.backward()
    grads = {name: p.grad for name, p in theirs.named_parameters()}
    layers = [block.lstm.layer for block in lm.model.body.blocks]
    for i, layer in enumerate(layers):
        near(layer.weight_hh_l0.grad, grads[f"0.module.rnns.{i}.weight_hh_l0_raw"], f"layer {i}", 2e-5)
    near(lm.model.up.weight.grad, grads["1.layers.0.2.weight"])
    near(lm.model.norm1.gamma.grad, grads["1.layers.0.0.weight"])
    near(lm.model.norm1.running_var, theirs[1].layers[0][0].running_var)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_convert(tmp_path, legacy, whole):
    """A file of fastai, new or old, and its vocabulary."""
    from plmcore.language_model.importing import convert_checkpoint

    theirs = language_model(seed=5)
    state = {"model": theirs.state_dict(), "opt": {}} if whole else theirs.state_dict()
    torch.save(state, tmp_path / "fwd.pth", _use_new_zipfile_serialization=not legacy)
    words = ["xxunk", "xxpad", "xxbos", "xxeos", *(f"w{i}" for i in range(V - 6)), "xxfake", "xxfake"]
    (tmp_path / "itos.pkl").write_bytes(pickle.dumps(words, protocol=2 if legacy else 4))
    convert_checkpoint(tmp_path / "fwd.pth", tmp_path / "out", "awd-lstm", tmp_path / "itos.pkl")
    lm = plm.load(tmp_path / "out")
    ids = lm.tokenizer("w3 w9 zebra W1").input_ids[None]
    assert ids.tolist() == [[2, 7, 13, 0, 5]]
    theirs.reset()
    near(lm(ids).logits, theirs(torch.tensor(ids))[0])
    assert (lm.config.d_embed, lm.config.d_hidden, lm.config.n_layers) == (12, 20, 3)


def test_convert_files_from_before_fastai_1(tmp_path):
    """Other names, and no bias of the output layer."""
    from plmcore.language_model.importing import convert_checkpoint

    theirs = language_model(seed=6, out_bias=False)
    state = {
        name.replace(".weight_hh_l0_raw", ".module.weight_hh_l0_raw").replace(
            "encoder_dp.emb", "encoder_with_dropout.embed"
        ): t
        for name, t in theirs.state_dict().items()
    }
    torch.save(state, tmp_path / "fwd_wt103.h5", _use_new_zipfile_serialization=False)
    convert_checkpoint(tmp_path / "fwd_wt103.h5", tmp_path / "out", "awd-lstm")
    lm = plm.load(tmp_path / "out")
    assert not lm.config.out_bias
    ids = np.arange(10).reshape(2, 5)
    theirs.reset()
    near(lm(ids).logits, theirs(torch.tensor(ids))[0])


@pytest.mark.parametrize("dropout", [True, False])
def test_convert_a_classifier(tmp_path, dropout):
    from plmcore.language_model.importing import convert_checkpoint

    config = dict(SIZES) if dropout else dict(SIZES, output_p=0.0)
    theirs = scaled(get_text_classifier(AWD_LSTM, V, 3, config=config, lin_ftrs=[7]), seed=7)
    torch.save(theirs.state_dict(), tmp_path / "classifier.pth")
    convert_checkpoint(tmp_path / "classifier.pth", tmp_path / "out", "awd-lstm")
    lm = plm.load(tmp_path / "out")
    assert lm.head == "sequence-classification" and lm.config.num_labels == 3
    rows = texts((5, 100))
    expected = torch.cat([theirs(torch.tensor(row[None]))[0] for row in rows])
    near(lm(*padded(rows)).logits, expected)
