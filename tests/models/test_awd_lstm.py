"""AWD-LSTM: states, dropouts, padding, generation, windows of the classifier, files of fastai."""

import pickle

import numpy as np
import plmcore as plm
import pytest
from plmcore import models, nn, ops
from plmcore.language_model.importing import convert_checkpoint

V = 20
SIZES = dict(model_type="awd-lstm", vocab_size=V, d_embed=6, d_hidden=10, n_layers=3, pad_token_id=0)
NONE = dict(embed_p=0.0, input_p=0.0, hidden_p=0.0, weight_p=0.0, output_p=0.0)
rng = np.random.default_rng(0)
IDS = rng.integers(1, V, (3, 12))


def made(head="causal-lm", **changes):
    """Weights of a size at which differences show."""
    plm.seed(1)
    lm = plm.from_config({**SIZES, **changes}, head).eval()
    for p in lm.parameters():
        if p.ndim > 1:
            plm._core.assign(p, ops.affine(p.detach(), 3.0, 0.0))
    return lm


def test_windows_with_the_state_are_the_whole_text():
    lm = made()
    whole = lm(IDS)
    state, found = None, []
    for a, b in ((0, 5), (5, 6), (6, 12)):
        out = lm(IDS[:, a:b], state=state)
        state = out.state
        found.append(out.logits.numpy())
    np.testing.assert_allclose(np.concatenate(found, 1), whole.logits.numpy(), atol=1e-5)
    for (h, c), (h2, c2), width in zip(whole.state, state, (10, 10, 6), strict=True):
        assert h.shape == (1, 3, width)
        np.testing.assert_allclose(h.numpy(), h2.numpy(), atol=1e-5)
        np.testing.assert_allclose(c.numpy(), c2.numpy(), atol=1e-5)
    pairs = [(h.numpy(), c.numpy()) for h, c in lm(IDS[:, :5]).state]
    np.testing.assert_allclose(
        lm(IDS[:, 5:], state=pairs).logits.numpy(), whole.logits.numpy()[:, 5:], atol=1e-5
    )
    assert "state: LayerStates of 3" in repr(whole)


def test_states_that_do_not_fit():
    lm = made()
    state = lm(IDS).state
    with pytest.raises(
        plm.ShapeError, match=r"h must be \[1, 2, 10\].*got \[1, 3, 10\]; begin another batch"
    ):
        lm(IDS[:2], state=state)
    with pytest.raises(plm.ArgumentError, match=r"a pair \(h, c\) for each of the 3 layers, got 2"):
        lm(IDS, state=list(state)[:2])
    with pytest.raises(plm.ShapeError, match="the state of layer 2"):
        lm(IDS, state=[state[0], state[1], state[0]])


@pytest.mark.parametrize("side", ["right", "left", "holes"])
def test_padding_changes_nothing(side):
    lm = made()
    text = IDS[0, :5]
    places = {"right": range(5), "left": range(4, 9), "holes": (0, 2, 3, 6, 8)}[side]
    ids, mask = np.full((2, 9), 7), np.zeros((2, 9), np.int64)
    ids[0, list(places)], mask[0, list(places)] = text, 1
    ids[1], mask[1] = IDS[1, :9], 1
    out, alone = lm(ids, attention_mask=mask), lm(text[None])
    np.testing.assert_allclose(out.logits.numpy()[0, list(places)], alone.logits.numpy()[0], atol=1e-5)
    assert (out.logits.numpy()[0][mask[0] == 0] == 0).all()
    np.testing.assert_allclose(out.state[2][1].numpy()[:, :1], alone.state[2][1].numpy(), atol=1e-5)


def test_loss_and_hidden_states():
    lm = made()
    out = lm(IDS, labels=IDS, output_hidden_states=True)
    logits = out.logits.numpy()[:, :-1].astype(np.float64)
    chosen = np.take_along_axis(logits, IDS[:, 1:, None], 2)[..., 0]
    expected = (np.log(np.exp(logits).sum(-1)) - chosen).mean()
    assert abs(out.loss.item() - expected) < 1e-5
    assert [h.shape[2] for h in out.hidden_states] == [6, 10, 10, 6]


def test_tied_and_untied():
    tied, untied = made(), made(tie_word_embeddings=False, out_bias=False)
    assert tied.model.decoder.weight is tied.model.body.tokens.weight
    assert untied.model.num_parameters() == tied.model.num_parameters() + V * 6 - V


def test_the_published_size():
    assert models.count_parameters(models.config_from_dict(dict(model_type="awd-lstm")), "causal-lm") == (
        60000 * 400 + 60000 + sum(4 * (a + b + 2) * b for a, b in ((400, 1152), (1152, 1152), (1152, 400)))
    )


@pytest.mark.parametrize("options", [dict(), dict(num_beams=3, num_return_sequences=2)])
def test_generation_is_that_of_the_whole_text(options):
    """Step by step with the state, each best continuation is what a whole pass says."""
    lm = made()
    prompts = [IDS[0, :4], IDS[1, :7]]
    found = lm.generate(prompts, max_new_tokens=6, pad_token_id=0, **options)
    best = found[:: options.get("num_return_sequences", 1)]
    if not options:
        for row, prompt in zip(best, prompts):
            text = row[row != 0][: len(prompt) + 6] if (row == 0).any() else row
            for t in range(len(prompt), len(text)):
                assert lm(text[None, :t]).logits.numpy()[0, -1].argmax() == text[t]
    else:
        score = lambda row: sum(
            np.log(np.exp(x) / np.exp(x).sum())[row[t + 1]]
            for t, x in enumerate(lm(row[None]).logits.numpy()[0][:-1].astype(np.float64))
            if t + 1 >= 7
        )
        assert score(found[2]) >= score(found[3]) - 1e-4  # the second prompt fills its row


# ---- dropouts ----


def zeros(x):
    return x.numpy() == 0


def test_masks_are_constant_over_time():
    lm = made(**NONE | dict(output_p=0.5)).train()
    plm.seed(3)
    out = lm(IDS)
    dropped = zeros(out.dropped_hidden_state)
    assert (dropped == dropped[:, :1]).all() and 0 < dropped.mean() < 1
    assert (dropped[0, 0] != dropped[1, 0]).any()
    assert not zeros(out.last_hidden_state).any()
    plain = made(**NONE | dict(output_p=0.5), locked=False).train()
    plain_dropped = zeros(plain(IDS).dropped_hidden_state)
    assert (plain_dropped != plain_dropped[:, :1]).any()


def test_whole_rows_of_the_embedding_are_dropped():
    lm = made(**NONE | dict(embed_p=0.4)).train()
    plm.seed(5)
    x, kept = lm.model.body.embed(plm.Tensor(IDS)).numpy(), lm.model.body.tokens.weight.numpy()
    gone = {int(t) for t, row in zip(IDS.ravel(), x.reshape(-1, 6)) if (row == 0).all()}
    there = {int(t) for t, row in zip(IDS.ravel(), x.reshape(-1, 6)) if (row != 0).all()}
    assert gone and there and not gone & there
    token = next(iter(there))
    np.testing.assert_allclose(x[IDS == token][0], kept[token] / 0.6, rtol=1e-5)


@pytest.mark.parametrize("key", NONE)
def test_each_dropout_acts_while_training(key):
    lm = made(**NONE | {key: 0.5})
    still = lm(IDS).logits.numpy()
    lm.train()
    plm.seed(0)
    first, second = lm(IDS).logits.numpy(), lm(IDS).logits.numpy()
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(lm.eval()(IDS).logits.numpy(), still)
    assert made(**{key: 0.5}, drop_mult=0.0).train()(IDS).logits.numpy().shape == still.shape


def test_without_dropouts_training_computes_what_evaluation_does():
    lm = made(drop_mult=0.0)
    np.testing.assert_array_equal(lm.train()(IDS).logits.numpy(), lm.eval()(IDS).logits.numpy())


# ---- the classifier ----


def classifier(**changes):
    return made("sequence-classification", **dict(bptt=4, max_len=8, num_labels=3) | changes)


def test_only_the_windows_at_the_end_are_pooled():
    """Windows that begin in the last max_len tokens: of 12 in windows of 4 the last."""
    lm = classifier(max_len=7)
    lm.model.up = nn.Linear(18, 50, bias=False)  # without ReLU, so that every feature counts
    seen = []
    lm.model.norm1 = lambda x: seen.append(x.numpy()) or x
    lm(IDS)
    top = lm.model.body(plm.Tensor(IDS)).last_hidden_state.numpy()
    expected = np.concatenate([top[:, -1], top[:, 8:].max(1), top[:, 8:].mean(1)], 1)
    np.testing.assert_allclose(seen[0], expected, atol=1e-6)


def test_windows_of_training_are_the_text():
    """But for gradients; of rows of several lengths."""
    lm = classifier(drop_mult=0.0, classifier_dropouts=(0.0,) * 5, head_p=0.0)
    mask = (np.arange(12) < np.array([[12], [5], [9]])).astype(np.int64)
    x = lm.model.body.tokens(plm.Tensor(IDS))
    columns = models.columns.Columns(models.padding.layout(plm.Tensor(IDS), plm.Tensor(mask)))
    inputs = columns.of(columns.layout.pack(x))
    _, whole = lm.model.read(inputs, columns)
    _, windows = lm.train().model.read(inputs, columns)
    np.testing.assert_allclose(windows.numpy(), whole.numpy(), atol=1e-5)


def test_backward_reads_from_the_end():
    forward, back = classifier(), classifier(backward=True)
    np.testing.assert_allclose(
        back(IDS[:, ::-1].copy()).logits.numpy(), forward(IDS).logits.numpy(), atol=1e-6
    )


def test_an_empty_text_among_others():
    out = classifier()(np.where(np.arange(12) < 0, IDS, [[0], [3], [4]])).logits.numpy()
    assert np.isfinite(out).all()


def test_one_row_cannot_be_trained_on():
    with pytest.raises(plm.ArgumentError, match="two values or more"):
        classifier().train()(IDS[:1], labels=np.array([1]))


def test_a_classifier_begins_with_the_language_model(tmp_path):
    lm = made()
    lm.save(tmp_path / "lm")
    with pytest.warns(UserWarning):
        found = plm.load(tmp_path / "lm", head="sequence-classification", num_labels=3)
    np.testing.assert_array_equal(found.model.body.tokens.weight.numpy(), lm.model.body.tokens.weight.numpy())
    found.model.norm1.running_mean.numpy()
    plm._core.assign(found.model.norm1.running_mean, ops.full((18,), 0.5))
    found.save(tmp_path / "classifier")
    again = plm.load(tmp_path / "classifier")
    assert (again.model.norm1.running_mean.numpy() == 0.5).all()
    np.testing.assert_array_equal(again(IDS).logits.numpy(), found(IDS).logits.numpy())


# ---- config and files ----


def test_keys_of_fastai():
    published = dict(emb_sz=400, n_hid=1152, n_layers=3, pad_token=1, output_p=0.1, hidden_p=0.15,
                     input_p=0.25, embed_p=0.02, weight_p=0.2, tie_weights=True, out_bias=True)  # fmt: skip
    assert models.config_from_dict(dict(model_type="awd-lstm", **published)) == models.config_from_dict(
        dict(model_type="awd-lstm")
    )


def test_dropouts_that_are_none():
    for key, value, rule in (
        ("weight_p", 1.0, r"must be in \[0, 1\)"),
        ("classifier_dropouts", [0.1, 0.2], "must be 5 probabilities"),
        ("drop_mult", 3.0, "must leave all dropouts below 1, also 0.4"),
    ):
        with pytest.raises(plm.ArgumentError, match=f"{key} {rule}"):
            models.config_from_dict({**SIZES, key: value})


def written(folder, words):
    path = folder / "itos.pkl"
    path.write_bytes(words if isinstance(words, bytes) else pickle.dumps(words))
    return path


@pytest.mark.parametrize(
    "words, message",
    [
        ({"a": 1}, "must hold a list of words and nothing else, got a dict"),
        (["xxunk", 3], "word 1 must be a text, got a int"),
        (["xxunk", "xxpad", "xxbos", "a", "a"], "has the word 'a' twice, as 3 and as 4"),
        (["a", "b"], "lacks special tokens"),
        ([], "must hold a list of words"),
        (pickle.dumps(["xxunk"])[:-3], "is no pickled list of words"),
        (b"cposix\nsystem\n(S'touch /tmp/x'\ntR.", "is no pickled list of words.*posix.system"),
        (pickle.dumps(["xxunk", "xxpad", "xxbos"]) + b"more", "nothing else"),
    ],
)
def test_vocabularies_that_are_none(tmp_path, words, message):
    from plmcore.tokenizers.word_list import read_words

    with pytest.raises(plm.FormatError, match=message):
        read_words(written(tmp_path, words), "awd-lstm")


def test_damaged_vocabularies(tmp_path):
    """Any change of a byte is another list of words, or one error."""
    from plmcore.tokenizers.word_list import read_words

    good = pickle.dumps(["xxunk", "xxpad", "xxbos", "xxeos", "film", "the"])
    draw, refused = np.random.default_rng(0), 0
    for _ in range(400):
        data = bytearray(good)
        for at in draw.integers(0, len(good), draw.integers(1, 4)):
            data[at] = draw.integers(0, 256)
        try:
            read_words(written(tmp_path, bytes(data[: draw.integers(1, len(data) + 1)])), "awd-lstm")
        except plm.FormatError:
            refused += 1
    assert refused > 300


def test_old_vocabularies(tmp_path):
    from plmcore.tokenizers.word_list import read_words

    tokenizer = read_words(written(tmp_path, ["_unk_", "_pad_", "the", "film"]), "awd-lstm")
    assert tokenizer("The film, the plot").input_ids.tolist() == [2, 3, 0, 2, 0]
    assert tokenizer.pad_token_id == 1


def test_checkpoints_that_do_not_fit(tmp_path, golden_awd):
    folder, _ = golden_awd
    with pytest.raises(plm.FormatError, match="the vocabulary has 4 words, 0.encoder.weight 12 rows"):
        words = written(tmp_path, ["xxunk", "xxpad", "xxbos", "a"])
        convert_checkpoint(folder / "fwd.pth", tmp_path / "out", "awd-lstm", words)
    mass = folder.parent / "mass" / "checkpoint.pt"
    with pytest.raises(plm.FormatError, match="it has no matrices 0.encoder.weight"):
        convert_checkpoint(mass, tmp_path / "out", "awd-lstm")
    assert not (tmp_path / "out").exists()


def test_a_file_of_fastai(tmp_path, golden_awd):
    folder, expected = golden_awd
    convert_checkpoint(folder / "fwd.pth", tmp_path / "lm", "awd-lstm", folder / "itos.pkl")
    lm = plm.load(tmp_path / "lm")
    np.testing.assert_allclose(lm(expected["ids"]).logits.numpy(), expected["logits"], atol=1e-5)


@pytest.fixture
def golden_awd():
    import pathlib

    folder = pathlib.Path(__file__).parents[1] / "golden" / "checkpoints" / "awd-lstm"
    with np.load(folder / "outputs.npz") as arrays:
        return folder, dict(arrays)
