"""ELMo: the published weights reproduce their vectors, state and padding, files and their faults."""

import json
import os
import pathlib
import shutil

import numpy as np
import plmcore as plm
import pytest
from plmcore import nn
from plmcore._core import assign
from plmcore.cli import convert
from plmcore.language_model.importing import convert_checkpoint
from plmcore.models import spelling

DATA = pathlib.Path(os.environ.get("PLM_DATA", pathlib.Path(__file__).parents[2].parent / "shared" / "data"))
PUBLISHED = {"tiny": "lm_embeddings_sentences.json", "skip": "sentences.json"}
CONFIG = dict(
    model_type="elmo", vocab_size=30, char_embed_dim=4, filters=[[1, 4], [2, 8], [3, 4]], dim=12,
    projection_dim=6, max_characters_per_token=12, sampled=10,
)  # fmt: skip
SENTENCES = ["the cat sat", ["a", "naïve", "dog"], "x", "the end of it all ."]


def published(name):
    folder = DATA / f"weights-elmo-{name}"
    if not folder.exists():
        pytest.skip(f"needs {folder}")
    pytest.importorskip("h5py")
    return folder


def small(**changes):
    plm.seed(5)
    return plm.from_config(CONFIG | changes).eval()


def widened(lm):
    """With weights far from 0, so that states and clips matter."""
    rng = np.random.default_rng(1)
    for p in lm.parameters():
        assign(p, plm.Tensor((rng.normal(size=tuple(p.shape)) * 0.8).astype(np.float32)))
    return lm


def naive(model, ids):
    """The formulas for one sentence, in float64.  ids [T, W] -> [L + 1, T, 2 P]"""
    w = {k: t.numpy().astype(np.float64) for k, t in model.state_dict().items()}
    cfg = model.config
    x = w["words.characters.weight"][ids]  # [T, W, d]
    parts = []
    for i, (width, _) in enumerate(cfg.filters):
        windows = np.stack(
            [x[:, k : k + x.shape[1] - width + 1] for k in range(width)], 3
        )  # [T, n, d, width]
        y = np.einsum("tndw,odw->tno", windows, w[f"words.convs.{i}.weight"]) + w[f"words.convs.{i}.bias"]
        parts.append(np.maximum(y.max(1), 0))
    x = np.concatenate(parts, 1)
    for i in range(cfg.n_highway):
        t, c = (
            x @ w[f"words.highways.{i}.{part}.weight"].T + w[f"words.highways.{i}.{part}.bias"]
            for part in ("transform", "carry")
        )
        g = 1 / (1 + np.exp(-c))
        x = (1 - g) * x + g * np.maximum(t, 0)
    x = x @ w["words.projection.weight"].T + w["words.projection.bias"]
    layers = [np.concatenate([x, x], 1)]
    ways = {}
    for way in ("forward", "backward"):
        y = x if way == "forward" else x[::-1]
        for layer in range(cfg.n_layers):
            ih, hh, bias, hr = (
                w[f"{way}.layers.{layer}.{part}_l0"]
                for part in ("weight_ih", "weight_hh", "bias_hh", "weight_hr")
            )
            h, c, out = np.zeros(cfg.projection_dim), np.zeros(cfg.dim), []
            for step in y:
                i, f, g, o = np.split(ih @ step + hh @ h + bias, 4)
                i, f, o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
                c = np.clip(f * c + i * np.tanh(g), -cfg.cell_clip, cfg.cell_clip)
                h = np.clip(hr @ (o * np.tanh(c)), -cfg.proj_clip, cfg.proj_clip)
                out.append(h)
            y = np.array(out) + (y if cfg.use_skip_connections and layer else 0)
            ways[way, layer] = y if way == "forward" else y[::-1]
    return np.stack(
        layers + [np.concatenate([ways["forward", k], ways["backward", k]], 1) for k in range(cfg.n_layers)]
    )


# ---- the published weights ----


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_weights_reproduce_their_vectors(name, tmp_path):
    folder = published(name)
    import h5py

    assert convert.run(arguments(folder, tmp_path / "elmo")) == 0
    lm = plm.load(tmp_path / "elmo")
    assert lm.config.use_skip_connections == (name == "skip")
    sentences = json.loads((folder / PUBLISHED[name]).read_text())
    wanted = [h5py.File(folder / f"lm_embeddings_{k}.hdf5") for k in range(3)]

    def distance(stateful):
        lm.model.reset()
        worst = 0.0
        for i in range(len(sentences[0])):
            found = lm.model.embed([s[i] for s in sentences], batch_size=3, stateful=stateful)
            for vectors, file in zip(found, wanted):
                right = np.concatenate(list(file[str(i)]), 1)  # [words, 2 P]
                assert vectors.shape == (3, *right.shape)
                worst = max(worst, np.abs(vectors[2] - right).max())
        return worst

    assert distance(stateful=True) < 5e-6
    assert distance(stateful=False) > 0.1  # the state matters


def test_published_vectors_of_words(tmp_path):
    folder = published("skip")
    import h5py

    convert_checkpoint(folder, tmp_path / "elmo", "elmo")
    words = (folder / "vocab_test.txt").read_text().split()
    found = plm.load(tmp_path / "elmo").model.embed([words])[0][0]
    wanted = np.array(h5py.File(folder / "elmo_token_embeddings.hdf5")["embedding"])
    real = [i for i, word in enumerate(words) if word not in ("<S>", "</S>")]  # which are no texts
    assert len(words) == len(wanted) == len(real) + 2
    assert np.abs(found[real, :16] - wanted[real]).max() < 5e-6
    assert np.array_equal(found[:, :16], found[:, 16:])


def arguments(source, out, **others):
    from argparse import Namespace

    return Namespace(
        **(dict(source=source, out=out, family="elmo", vocab=None, set=[], max_shard_mb=None) | others)
    )


# ---- the formulas ----


@pytest.mark.parametrize("skips, clip", [(True, 3.0), (False, 3.0), (True, 0.4)])
def test_formulas(skips, clip):
    lm = widened(small(use_skip_connections=skips, cell_clip=clip, proj_clip=clip)).to("float64")
    ids, words = spelling.sentences_of(SENTENCES, 12)
    for sentence, row, n in zip(SENTENCES, ids, words):
        wanted = naive(lm.model, row[: n + 2])
        assert np.abs(wanted).max() > 0.3
        assert np.allclose(lm.model.embed([sentence], stateful=False)[0], wanted[:, 1:-1], atol=1e-12)


def test_padding_changes_nothing_and_is_zero():
    lm = widened(small())
    together = lm.model.embed(SENTENCES, stateful=False)
    for sentence, found in zip(SENTENCES, together):
        assert np.allclose(found, lm.model.embed([sentence], stateful=False)[0], atol=2e-6)
    batch = lm.tokenizer or plm.tokenizers.WordCharacters(12)
    inputs = batch(["a b c", "d"])
    out = lm(inputs.input_ids, attention_mask=inputs.attention_mask, output_hidden_states=True)
    assert out.last_hidden_state.shape == (2, 5, 12) and len(out.hidden_states) == 3
    hidden = inputs.attention_mask == 0
    assert hidden.sum() == 2
    for h in out.hidden_states:
        assert not h.numpy()[hidden].any() and np.abs(h.numpy()[~hidden]).min(-1).max() > 0


def test_the_state_goes_from_batch_to_batch():
    lm = widened(small())
    first = lm.model.embed(SENTENCES, batch_size=2)
    again = lm.model.embed(SENTENCES, batch_size=2)
    assert not np.allclose(first[0][1:], again[0][1:], atol=1e-3)
    lm.model.reset()
    assert np.array_equal(first[3], lm.model.embed(SENTENCES, batch_size=2)[3])
    lm.model.reset()
    by_hand = lm.model.embed(SENTENCES[:2]) + lm.model.embed(SENTENCES[2:])
    assert all(np.array_equal(a, b) for a, b in zip(first, by_hand))


def test_a_smaller_batch_leaves_other_states_alone():
    lm = widened(small())
    lm.model.embed(SENTENCES[:3])
    lm.model.embed(SENTENCES[:1])
    lm.model.embed(SENTENCES[:1])
    third = lm.model.embed([SENTENCES[0], SENTENCES[1], SENTENCES[2]])[2]
    lm.model.reset()
    lm.model.embed(SENTENCES[:3])
    assert np.allclose(lm.model.embed(SENTENCES[:3])[2], third, atol=2e-6)
    wide = lm.model.embed([*SENTENCES, "new ones"])  # more than before begin with zeros
    lm.model.reset()
    assert np.allclose(wide[4], lm.model.embed(["new ones"])[0], atol=2e-6)


def test_state_of_a_call():
    lm = widened(small())
    ids, _ = spelling.sentences_of(["one two three four"], 12)
    whole = lm(ids)
    head = lm(ids[:, :4])
    rest = lm(ids[:, 4:], state=head.state)
    P = 6
    both = np.concatenate([head.last_hidden_state.numpy(), rest.last_hidden_state.numpy()], 1)[..., :P]
    assert np.allclose(both, whole.last_hidden_state.numpy()[..., :P], atol=2e-6)
    with pytest.raises(plm.ShapeError, match="the state is of 1 sequences, the batch has 2"):
        lm(np.repeat(ids, 2, 0), state=head.state)
    with pytest.raises(plm.ShapeError, match="must have h and c"):
        lm(ids, state=nn.RecurrentState(head.state.h))


def test_unknown_words_have_vectors():
    found = widened(small()).model.embed(["zyxw", "zyxv", "zyxw"], stateful=False)
    assert np.abs(found[0]).max() > 0 and not np.allclose(found[0][0], found[1][0])
    assert np.array_equal(found[0], found[2])


def test_the_published_size():
    config = plm.models.elmo.ElmoConfig()
    assert plm.models.count_parameters(config) == 93_600_848 + 16  # and a row of zeros


def test_save_load_trace(tmp_path):
    lm = widened(small())
    lm.save(tmp_path / "a")
    again = plm.load(tmp_path / "a")
    assert again.config.filters == tuple(map(list, CONFIG["filters"]))
    ids = again.tokenizer(SENTENCES[0]).input_ids[None]
    assert np.array_equal(lm(ids).last_hidden_state.numpy(), again(ids).last_hidden_state.numpy())
    again.save(tmp_path / "b")
    assert plm.load(tmp_path / "b").tokenizer("a b").input_ids.shape == (4, 12)
    plm.export(again, tmp_path / "elmo.plm")
    program = plm.load_program(tmp_path / "elmo.plm")
    for texts in (["a b", "c"], ["d e f g", "h", "i j"]):
        batch = again.tokenizer(texts)
        inputs = {k: batch[k] for k in ("input_ids", "attention_mask")}
        wanted = again(**inputs).last_hidden_state.numpy()
        assert np.allclose(program(**inputs)["last_hidden_state"].numpy(), wanted, atol=1e-6)


# ---- bad input ----


def test_bad_sentences():
    lm = small()
    assert lm.model.embed([]) == [] and lm.model.embed([""])[0].shape == (3, 0, 12)
    for sentences, message in (
        ("one text", "a list of sentences"),
        ([["a", 3]], "a word must be a text, got 3"),
        (["\ud800"], "half a surrogate"),
    ):
        with pytest.raises(plm.ArgumentError, match=message):
            lm.model.embed(sentences)
    with pytest.raises(plm.ArgumentError, match="batch_size must be at least 1"):
        lm.model.embed(["a"], batch_size=0)
    ids, _ = spelling.sentences_of(["a b", "c"], 12)
    with pytest.raises(plm.ArgumentError, match="padding must be behind"):
        lm(ids, attention_mask=[[1, 0, 1, 1], [1, 1, 1, 0]])
    with pytest.raises(plm.ShapeError, match=r"\[batch, words, 12\], got int64 \[2, 4\]"):
        lm(ids[..., 0])
    with pytest.raises(plm.ShapeError, match="attention_mask must be"):
        lm(ids, attention_mask=[[1, 1, 1]])


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(filters=[[0, 4]]), "filters must be pairs"),
        (dict(filters=[]), "filters must be pairs"),
        (dict(filters=[[13, 4]]), "filters must be at most max_characters_per_token = 12"),
        (dict(activation="gelu"), "activation must be one of relu, tanh"),
        (dict(n_characters=100), "n_characters must be one of 262"),
        (dict(cell_clip=0.0), "cell_clip must be positive"),
        (dict(char_projection=False), "the filters give 16 numbers"),
        (dict(max_characters_per_token=3), "max_characters_per_token must be at least 4"),
    ],
)
def test_bad_configs(changes, message):
    with pytest.raises(plm.ArgumentError, match=message):
        small(**changes)


# ---- bad files ----


def files(tmp_path, change=None, options=None, keep=lambda name: True):
    """A folder of weights of a small model; `change` replaces arrays."""
    h5py = pytest.importorskip("h5py")
    rng, C, P, H, d = np.random.default_rng(0), 16, 6, 12, 4
    arrays = {"char_embed": (261, d), "CNN_proj/W_proj": (C, P), "CNN_proj/b_proj": (P,)}
    for i, (width, n) in enumerate(CONFIG["filters"]):
        arrays |= {f"CNN/W_cnn_{i}": (1, width, d, n), f"CNN/b_cnn_{i}": (n,)}
    for i in range(2):
        for part in ("transform", "carry"):
            arrays |= {f"CNN_high_{i}/W_{part}": (C, C), f"CNN_high_{i}/b_{part}": (C,)}
        for layer in range(2):
            cell = f"RNN_{i}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
            arrays |= {f"{cell}W_0": (2 * P, 4 * H), f"{cell}B": (4 * H,), f"{cell}W_P_0": (H, P)}
    values = {name: rng.normal(size=shape).astype(np.float32) for name, shape in arrays.items()} | (
        change or {}
    )
    folder = tmp_path / "published"
    folder.mkdir()
    with h5py.File(folder / "x_weights.hdf5", "w") as f:
        for name, array in values.items():
            if keep(name):
                f[name] = array
    lstm = dict(cell_clip=3, proj_clip=3, dim=H, projection_dim=P, n_layers=2, use_skip_connections=True)
    cnn = dict(
        embedding=dict(dim=d), filters=CONFIG["filters"], n_highway=2, max_characters_per_token=12,
        n_characters=262, activation="relu",
    )  # fmt: skip
    (folder / "x_options.json").write_text(json.dumps(options or dict(lstm=lstm, char_cnn=cnn)))
    return folder


def test_whole_files_convert(tmp_path):
    folder = files(tmp_path)
    for source in (folder, folder / "x_weights.hdf5"):
        convert_checkpoint(source, tmp_path / "out", "elmo")
        assert plm.load(tmp_path / "out").model.embed(["a b"])[0].shape == (3, 2, 12)
    with pytest.raises(plm.ArgumentError, match="takes no --vocab"):
        convert_checkpoint(folder, tmp_path / "more", "elmo", tmp_path / "vocab.txt")
    convert_checkpoint(folder, tmp_path / "changed", "elmo", changes={"dropout": 0.3})
    assert plm.load(tmp_path / "changed").config.dropout == 0.3


FAULTS = {
    "missing": (dict(keep=lambda n: n != "CNN_high_1/W_carry"), "it has no array CNN_high_1/W_carry"),
    "shape": (
        dict(change={"RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_0": np.zeros((12, 40), np.float32)}),
        r"Cell1/LSTMCell/W_0 must be numbers \[12, 48\] by its options, got float32 \[12, 40\]",
    ),
    "rank": (
        dict(change={"CNN/W_cnn_0": np.zeros((4, 4), np.float32)}),
        r"CNN/W_cnn_0 must be numbers \[1, 1, 4, 4\]",
    ),
    "nan": (
        dict(change={"char_embed": np.full((261, 4), np.nan, np.float32)}),
        "char_embed has numbers that are not",
    ),
    "kind": (dict(change={"CNN_proj/b_proj": np.zeros(6, np.int64)}), "CNN_proj/b_proj must be numbers"),
    "texts": (dict(change={"CNN_proj/b_proj": "text"}), "CNN_proj/b_proj is no array of numbers"),
    "more": (
        dict(change={"CNN_high_7/W_carry": np.zeros((2, 2), np.float32)}),
        "no place for CNN_high_7/W_carry",
    ),
    "options": (dict(options=dict(lstm=dict(n_layers="two"))), "must be"),
    "no options": (dict(options=dict(some="thing")), "char_cnn.filters must be a list, got None"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_files(fault, tmp_path, capsys):
    options, message = FAULTS[fault]
    folder = files(tmp_path, **options)
    with pytest.raises(plm.FormatError, match=message):
        convert_checkpoint(folder, tmp_path / "out", "elmo")
    assert convert.run(arguments(folder, tmp_path / "out")) == 1 and not (tmp_path / "out").exists()
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_damaged_files(tmp_path):
    folder = files(tmp_path)
    weights = folder / "x_weights.hdf5"
    whole = weights.read_bytes()
    for damaged in (
        whole[:100],
        whole[: len(whole) // 2],
        b"",
        b"no hdf5 at all" * 100,
        whole[:8] + bytes(2000),
    ):
        weights.write_bytes(damaged)
        with pytest.raises(plm.FormatError, match="x_weights.hdf5' cannot be read"):
            convert_checkpoint(folder, tmp_path / "out", "elmo")
    weights.write_bytes(whole)
    (folder / "x_options.json").write_text("{")
    with pytest.raises(plm.FormatError):
        convert_checkpoint(folder, tmp_path / "out", "elmo")
    (folder / "x_options.json").unlink()
    with pytest.raises(FileNotFoundError, match="needs the options.json"):
        convert_checkpoint(folder, tmp_path / "out", "elmo")
    shutil.copy(weights, folder / "y_weights.hdf5")
    with pytest.raises(FileNotFoundError, match="name the file itself"):
        convert_checkpoint(folder, tmp_path / "out", "elmo")
    with pytest.raises(FileNotFoundError, match="there is no"):
        convert_checkpoint(tmp_path / "nothing.hdf5", tmp_path / "out", "elmo")


def test_flipped_bytes_are_errors_or_numbers(tmp_path):
    folder = files(tmp_path)
    weights = folder / "x_weights.hdf5"
    whole, rng = weights.read_bytes(), np.random.default_rng(2)
    for place in rng.integers(0, min(len(whole), 4000), 60):
        weights.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            convert_checkpoint(folder, tmp_path / "out", "elmo")
        except plm.FormatError:
            pass


def test_links_to_other_files_are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    folder = files(tmp_path, keep=lambda n: n != "char_embed")
    with h5py.File(tmp_path / "other.hdf5", "w") as f:
        f["char_embed"] = np.zeros((261, 4), np.float32)
    with h5py.File(folder / "x_weights.hdf5", "a") as f:
        f["char_embed"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "char_embed")
    with pytest.raises(plm.FormatError, match="it has no array char_embed"):
        convert_checkpoint(folder, tmp_path / "out", "elmo")


def test_an_array_without_its_numbers(tmp_path):
    h5py = pytest.importorskip("h5py")
    folder = files(tmp_path, keep=lambda n: n != "char_embed")
    with h5py.File(folder / "x_weights.hdf5", "a") as f:
        f.create_dataset("char_embed", (1 << 20, 1 << 20), np.float32, chunks=(64, 64))
    with pytest.raises(plm.FormatError, match="only 0 bytes are there"):
        convert_checkpoint(folder, tmp_path / "out", "elmo")


def test_without_h5py(tmp_path, monkeypatch):
    folder = files(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs h5py.*pip install 'plmcore\[elmo\]'"):
        convert_checkpoint(folder, tmp_path / "out", "elmo")
