"""CoVe: formulas, padding, layers, unknown words, and the files that it comes from."""

import json

import numpy as np
import plmcore as plm
import pytest
from plmcore._core import assign
from plmcore.language_model.importing import convert_checkpoint
from plmcore.models import spelling
from plmcore.models.word_table import WordTable

D, H = 6, 5
CONFIG = dict(model_type="cove", d_embed=D, d_hidden=H, n_layers=2)
RNG = np.random.default_rng(8)
VECTORS = plm.vectors.Vectors(["the", "cat", "sat", "Paris"], RNG.normal(size=(4, D)).astype(np.float32))
SENTENCES = ["the cat sat", ["unheard-of", "Paris"], "the The"]


def small():
    plm.seed(2)
    lm = plm.from_config(CONFIG).eval()
    for p in lm.parameters():
        assign(p, plm.Tensor(RNG.normal(size=tuple(p.shape)).astype(np.float32) * 0.6))
    return lm


def naive(model, x):
    """One sentence in float64.  x [T, D] -> the layers, [T, 2 H] each"""
    w = {k: t.numpy().astype(np.float64) for k, t in model.state_dict().items()}
    found = []
    for layer in range(2):
        ways = []
        for end in ("", "_reverse"):
            ih, hh, b1, b2 = (
                w[f"layers.{layer}.{k}_l0{end}"] for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            h, c, out = np.zeros(H), np.zeros(H), []
            for step in x[::-1] if end else x:
                i, f, g, o = np.split(ih @ step + b1 + hh @ h + b2, 4)
                i, f, o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
                c = f * c + i * np.tanh(g)
                h = o * np.tanh(c)
                out.append(h)
            ways.append(np.array(out[::-1] if end else out))
        x = np.concatenate(ways, 1)
        found.append(x)
    return found


def test_formulas_and_padding():
    lm = small()
    x, lengths = RNG.normal(size=(3, 7, D)).astype(np.float32), [7, 2, 4]
    mask = np.arange(7) < np.array(lengths)[:, None]
    out = lm(x, attention_mask=mask.astype(np.int64), output_hidden_states=True)
    assert out.last_hidden_state.shape == (3, 7, 2 * H) and len(out.hidden_states) == 3
    for b, n in enumerate(lengths):
        for wanted, found in zip(naive(lm.model, x[b, :n]), out.hidden_states[1:]):
            assert np.allclose(found.numpy()[b, :n], wanted, atol=1e-6)
            assert not found.numpy()[b, n:].any()
    assert np.array_equal(
        lm(inputs_embeds=x.tolist()).last_hidden_state.numpy()[0], lm(x).last_hidden_state.numpy()[0]
    )


def test_vectors_of_sentences():
    lm = small()
    found = lm.model.embed(SENTENCES, VECTORS, batch_size=2)
    assert [v.shape for v in found] == [(3, D + 2 * H), (2, D + 2 * H), (2, D + 2 * H)]
    assert not found[1][0, :D].any() and found[1][0, D:].any()  # unknown: a zero vector, in its context
    assert np.array_equal(found[1][1, :D], VECTORS["Paris"])
    assert np.array_equal(found[2][0, :D], found[2][1, :D])  # The, in lower case
    x = np.stack([VECTORS[w] for w in ("the", "cat", "sat")])
    first, second = naive(lm.model, x)
    assert np.allclose(found[0][:, D:], second, atol=1e-6)
    alone = lm.model.embed(SENTENCES, VECTORS, with_vectors=False, layers=0)
    assert np.allclose(alone[0], first, atol=1e-6)
    both = lm.model.embed(SENTENCES, VECTORS, layers="all")
    assert np.allclose(both[0], np.concatenate([x, first, second], 1), atol=1e-6)
    with pytest.raises(plm.ArgumentError, match="layers must be last, all or 0 to 1, got 2"):
        lm.model.embed(SENTENCES, VECTORS, layers=2)
    with pytest.raises(plm.ArgumentError, match="a list of sentences"):
        lm.model.embed("one text", VECTORS)


def test_a_table_reads_words_by_their_characters():
    table = WordTable(VECTORS.words, VECTORS.matrix)
    ids, _ = spelling.sentences_of(["The cat naïve", "Paris"], 12)
    found = table.of_characters(plm.Tensor(ids)).numpy()
    assert found.shape == (2, 5, D)
    assert np.array_equal(found[0, 1], VECTORS["the"]) and np.array_equal(found[1, 1], VECTORS["Paris"])
    assert not found[0, 0].any() and not found[0, 3].any() and not found[1, 2:].any()


def test_save_load_export(tmp_path):
    lm = small()
    lm.save(tmp_path / "cove")
    tensors, _ = plm.safetensors.read(tmp_path / "cove" / "model.safetensors")
    assert {"weight_ih_l0", "weight_hh_l1_reverse", "bias_ih_l1"} < tensors.keys() and len(tensors) == 16
    again = plm.load(tmp_path / "cove")
    x = RNG.normal(size=(2, 3, D)).astype(np.float32)
    wanted = lm(x).last_hidden_state.numpy()
    assert np.array_equal(again(x).last_hidden_state.numpy(), wanted)
    plm.export(again, tmp_path / "cove.plm")
    program = plm.load_program(tmp_path / "cove.plm")
    mask = np.ones((2, 3), np.int64)
    assert np.allclose(
        program(inputs_embeds=x, attention_mask=mask)["last_hidden_state"].numpy(), wanted, atol=1e-6
    )


def test_published_size():
    assert (
        plm.models.count_parameters(plm.models.cove.CoveConfig()) == 2 * (1200 * 600 + 1200 * 900) + 4 * 2400
    )


# ---- files ----


def translation_model(folder, change=lambda t: t, **config):
    """The directory of an rnn-seq2seq, as far as its encoder goes."""
    folder.mkdir()
    tensors = {
        f"encoder.rnn.{k}": np.array(t)
        for k, t in plm.models.names.published(plm.models.cove, small().model).items()
    }
    tensors |= {"decoder.rnn.weight_ih_l0": np.zeros((4, 4), np.float32)}
    plm.safetensors.write(folder / "model.safetensors", change(tensors))
    values = dict(model_type="rnn-seq2seq", cell="lstm", bidirectional=True) | config
    (folder / "config.json").write_text(json.dumps(values))
    return folder


def test_the_encoder_of_a_trained_translation_model(tmp_path):
    """What the translation model's encoder gives is what CoVe gives."""
    plm.seed(0)
    config = dict(model_type="rnn-seq2seq", vocab_size=30, d_embed=D, d_hidden=H, bidirectional=True)
    mt = plm.from_config(config, "seq2seq-lm").eval()
    mt.save(tmp_path / "mt")
    convert_checkpoint(tmp_path / "mt", tmp_path / "cove", "cove")
    ids = np.array([[3, 4, 5, 6]])
    wanted = mt(ids, decoder_input_ids=ids[:, :2]).encoder_last_hidden_state.numpy()
    tensors, _ = plm.safetensors.read(tmp_path / "mt" / "model.safetensors")
    x = tensors["encoder.embedding.weight"].numpy()[ids]
    assert np.allclose(plm.load(tmp_path / "cove")(x).last_hidden_state.numpy(), wanted, atol=1e-6)


def test_the_encoder_of_a_translation_model(tmp_path):
    convert_checkpoint(translation_model(tmp_path / "mt"), tmp_path / "cove", "cove")
    lm = plm.load(tmp_path / "cove")
    assert (lm.config.d_embed, lm.config.d_hidden, lm.config.n_layers) == (D, H, 2)


@pytest.mark.parametrize(
    "config, drop, message",
    [
        (dict(model_type="bert"), (), "is of 'bert': CoVe is the encoder of an rnn-seq2seq"),
        (dict(cell="gru"), (), "cell=lstm"),
        (dict(reverse_source=True), (), "reads its source from the end"),
        ({}, ("encoder.rnn.weight_ih_l0_reverse",), "it has no weight_ih_l0_reverse"),
        ({}, ("encoder.rnn.weight_ih_l0",), "it has no weight_ih_l0"),
        ({}, ("encoder.rnn.bias_hh_l1",), "missing: bias_hh_l1"),
    ],
)
def test_faults_of_files(tmp_path, config, drop, message):
    folder = translation_model(
        tmp_path / "mt", lambda t: {k: v for k, v in t.items() if k not in drop}, **config
    )
    with pytest.raises(plm.FormatError, match=message):
        convert_checkpoint(folder, tmp_path / "out", "cove")


def test_wrong_shapes(tmp_path):
    def cut(tensors):
        return tensors | {"encoder.rnn.weight_hh_l1": np.zeros((3, 3), np.float32)}

    with pytest.raises(plm.FormatError, match=r"weight_hh_l1 \[3, 3\], expected \[20, 5\]"):
        convert_checkpoint(translation_model(tmp_path / "mt", cut), tmp_path / "out", "cove")


def test_texts_need_their_vectors(tmp_path):
    small().save(tmp_path / "cove")
    with pytest.raises(plm.ArgumentError, match=r"lm.model.embed\(sentences, vectors\)"):
        plm.load(tmp_path / "cove").encode(["a b"])


def test_bad_input():
    lm = small()
    x = np.zeros((2, 3, D), np.float32)
    for wrong in (x[..., :4], x[0], x.astype(np.int64)):
        with pytest.raises(plm.ShapeError, match="must be the vectors of words"):
            lm(wrong)
    with pytest.raises(plm.ArgumentError, match="padding must be behind"):
        lm(x, attention_mask=[[0, 1, 1], [1, 1, 1]])
    with pytest.raises(plm.ShapeError, match="attention_mask must be"):
        lm(x, attention_mask=[[1, 1]])
