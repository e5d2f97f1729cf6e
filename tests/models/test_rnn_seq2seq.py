"""Recurrent sequence to sequence: names, padding, steps against whole passes, programs, what is refused."""

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, _core, cli, models
from plmcore.generate.steps import Steps
from plmcore.models.rnn_seq2seq import RNNSeq2SeqConfig

SIZES = dict(
    vocab_size=30, target_vocab_size=25, d_embed=6, d_hidden=8, encoder_layers=2, decoder_layers=2,
    init_range=0.5,
)  # fmt: skip
KINDS = {
    "none": dict(attention="none", reverse_source=True),
    "bahdanau": dict(attention="bahdanau", cell="gru", bidirectional=True),
    "bahdanau lstm": dict(attention="bahdanau", bidirectional=True),
    "dot": dict(attention="dot"),
    "general": dict(attention="general", bidirectional=True, bridge="concat"),
    "concat": dict(attention="concat", cell="gru", reverse_source=True),
    "fed": dict(attention="general", input_feeding=True, encoder_layers=1),
}
STEPWISE = ("bahdanau", "bahdanau lstm", "fed")
rng = np.random.default_rng(0)
IDS, TARGET = rng.integers(3, 30, (3, 7)), rng.integers(3, 25, (3, 5))
MASK = (np.arange(7) < np.array([7, 3, 5])[:, None]).astype(np.int64)
BATCH = dict(input_ids=IDS, attention_mask=MASK, labels=TARGET)
near = dict(atol=1e-5, rtol=0)


def model(kind, head="seq2seq-lm", **changes):
    plm.seed(3)
    return plm.from_config(RNNSeq2SeqConfig(**{**SIZES, **KINDS[kind], **changes}), head).eval()


# ---- names ----


def test_names_of_the_file(tmp_path):
    lm = model("bahdanau", encoder_layers=1, decoder_layers=1)
    lm.save(tmp_path)
    found = {k: tuple(t.shape) for k, t in plm.safetensors.read(tmp_path)[0].items() if ".rnn." not in k}
    assert found == {
        "encoder.embedding.weight": (30, 6), "decoder.embedding.weight": (25, 6), "attn.W_a": (8, 8),
        "attn.U_a": (8, 16), "attn.v_a": (8,), "attn.W_c": (8, 24), "bridge.h.0.weight": (8, 8),
        "out.W_s": (25, 8), "out.b_s": (25,),
    }  # fmt: skip
    assert {k for k in plm.safetensors.read(tmp_path)[0]} == {k for k, _ in lm.model.named_parameters()}
    shape = dict(lm.model.named_parameters())["decoder.rnn.weight_ih_l0"].shape
    assert shape == (24, 6 + 16)  # [embedding; context]


@pytest.mark.parametrize(
    "kind, shape", [("general", (16, 16)), ("concat", (8, 16)), ("bahdanau", (8, 8)), ("fed", (8, 8))]
)
def test_attention_has_what_its_formula_has(kind, shape):
    assert dict(model(kind).model.named_parameters())["attn.W_a"].shape == shape


@pytest.mark.parametrize("head", ["base", "seq2seq-lm"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_back_from_its_directory(kind, head, tmp_path):
    lm = model(kind, head)
    lm.save(tmp_path)
    again = plm.load(tmp_path)
    assert again.head == head
    for key in KINDS[kind]:
        assert getattr(again.config, key) == getattr(lm.config, key)
    inputs = dict(input_ids=IDS, attention_mask=MASK, decoder_input_ids=TARGET)
    field = "last_hidden_state" if head == "base" else "logits"
    assert np.array_equal(lm(**inputs)[field].numpy(), again(**inputs)[field].numpy())
    assert models.count_parameters(lm.config, head) == lm.model.num_parameters()


# ---- padding and alignments ----


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    """On the right, on the left, and holes: the encoder reads what the mask shows."""
    lm = model(kind)
    out, alone = lm(**BATCH), lm(input_ids=IDS[1:2, :3], labels=TARGET[1:2])
    holes = np.zeros((1, 7), np.int64)
    holes[0, [1, 4, 6]] = 1
    spread = np.full((1, 7), 9)
    spread[0, [1, 4, 6]] = IDS[1, :3]
    other = lm(input_ids=spread, attention_mask=holes, labels=TARGET[1:2])
    for found in (out.logits.numpy()[1], other.logits.numpy()[0]):
        np.testing.assert_allclose(found, alone.logits.numpy()[0], **near)
    np.testing.assert_allclose(out.decoder_states.numpy()[1], alone.decoder_states.numpy()[0], **near)
    assert not out.encoder_last_hidden_state.numpy()[MASK == 0].any()
    if out.alignments is None:
        return
    np.testing.assert_allclose(out.alignments.numpy().sum(-1), 1, **near)
    assert not out.alignments.numpy()[1, :, 3:].any()
    np.testing.assert_allclose(out.alignments.numpy()[1, :, :3], alone.alignments.numpy()[0], **near)
    np.testing.assert_allclose(other.alignments.numpy()[0][:, [1, 4, 6]], alone.alignments.numpy()[0], **near)


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_ends_early(kind):
    """Its mask hides the rest, and what stands there is 0."""
    lm = model(kind)
    mask = (np.arange(5) < np.array([2, 5, 4])[:, None]).astype(np.int64)
    whole = lm(input_ids=IDS, decoder_input_ids=TARGET)
    cut = lm(input_ids=IDS, decoder_input_ids=TARGET, decoder_attention_mask=mask)
    shown = mask.astype(bool)
    np.testing.assert_allclose(cut.logits.numpy()[shown], whole.logits.numpy()[shown], **near)
    states = cut.decoder_states.numpy()
    np.testing.assert_allclose(states[:, 1:][shown], whole.decoder_states.numpy()[:, 1:][shown], **near)
    assert not states[:, 1:][~shown].any() and states.shape == (3, 6, lm.config.width)


def test_rows_without_a_token():
    """Sources and targets that the mask hides as a whole disturb no other."""
    lm = model("fed")
    masks = dict(
        attention_mask=MASK * [[1], [0], [1]],
        decoder_attention_mask=np.array([[0], [1], [1]]) * np.ones(5, int),
    )
    out = lm(input_ids=IDS, decoder_input_ids=TARGET, **masks)
    whole = lm(input_ids=IDS, attention_mask=MASK, decoder_input_ids=TARGET)
    np.testing.assert_allclose(out.logits.numpy()[2], whole.logits.numpy()[2], **near)
    assert np.isfinite(out.logits.numpy()).all() and not out.decoder_states.numpy()[0, 1:].any()


def test_reversal_reads_from_the_end_and_changes_no_place():
    """The states of the source stand where its tokens do."""
    there, back = model("none"), model("none", reverse_source=False)
    back.model.load_state_dict(there.model.state_dict())
    for mask in (None, MASK):
        turned = IDS.copy()
        for row, n in zip(turned, [7, 7, 7] if mask is None else MASK.sum(1)):
            row[:n] = row[:n][::-1]
        given = {} if mask is None else dict(attention_mask=mask)
        a = there(input_ids=IDS, labels=TARGET, **given)
        b = back(input_ids=turned, labels=TARGET, **given)
        np.testing.assert_allclose(a.logits.numpy(), b.logits.numpy(), **near)
        n = 3 if mask is not None else 7
        np.testing.assert_allclose(
            a.encoder_last_hidden_state.numpy()[1, :n],
            b.encoder_last_hidden_state.numpy()[1, :n][::-1],
            **near,
        )


def test_the_page_of_alignments(tmp_path):
    from small_models import TEXT

    tokenizer = plm.train_tokenizer(texts=[TEXT], kind="words", vocab_size=25, family="rnn-seq2seq")
    lm = model("bahdanau", vocab_size=tokenizer.vocab_size, target_vocab_size=None)
    lm.tokenizer = tokenizer
    found = lm.attention("the cat sat", target="the dog ran")
    assert list(found.maps) == ["cross_attentions"]
    seen = found.maps["cross_attentions"]
    assert seen.weights.shape == (1, 1, 4, 4) and seen.columns == ["the", "cat", "sat", "</s>"]
    np.testing.assert_allclose(seen.weights.sum(-1), 1, **near)
    found.html(tmp_path / "alignment.html")
    assert "from target to source" in (tmp_path / "alignment.html").read_text()


def test_vectors_in_place_of_ids():
    lm = model("general")
    table = lm.model.encoder.embedding.weight.numpy()
    with plm.no_grad():
        a = lm.model.encode(Tensor(IDS), Tensor(MASK))
        b = lm.model.encode(None, Tensor(MASK), Tensor(table[IDS]))
    assert np.array_equal(a.rows.numpy(), b.rows.numpy()) and b.final.h.shape == (4, 3, 8)


# ---- decoding ----


@pytest.mark.parametrize("kind", KINDS)
def test_beams_score_as_the_whole_pass_does(kind):
    lm = model(kind)
    found = lm.generate(
        IDS, attention_mask=MASK, num_beams=3, num_return_sequences=2, max_new_tokens=6, output_scores=True
    )
    assert len({tuple(s) for s in found.sequences}) > 1
    for k, (row, scores) in enumerate(zip(found.sequences, found.token_scores)):
        i, n = k // 2, len(scores)
        logits = lm(input_ids=IDS[i : i + 1, : MASK[i].sum()], decoder_input_ids=row[None, :n]).logits.numpy()
        logp = logits[0] - np.log(np.exp(logits[0]).sum(-1, keepdims=True))
        np.testing.assert_allclose(logp[np.arange(n), row[1 : n + 1]], scores, **near)


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_of_the_decoder(kind):
    """Of several lengths in one batch, as each alone."""
    lm = model(kind)
    prompts, sources = [[2, 7, 9, 4], [2], [2, 5]], [IDS[0], IDS[1, :3], IDS[2, :5]]
    with plm.nn.inference():
        steps = Steps(lm.model, [np.array(p) for p in prompts], 5, sources)
        together = steps.start().numpy()
    for b, (source, prompt) in enumerate(zip(sources, prompts)):
        alone = lm(input_ids=source[None], decoder_input_ids=np.array([prompt])).logits.numpy()[0, -1]
        np.testing.assert_allclose(together[b], alone, **near)


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_from_the_file(kind, tmp_path):
    lm = model(kind)
    plm.export(lm, tmp_path / "model.plm")
    found = set(plm.load_programs(tmp_path / "model.plm"))
    assert found == {"encode", "start", "select", "step"} | (set() if kind in STEPWISE else {"score"})
    prompts = [[2]] * 3 if kind in STEPWISE else [[2, 7, 9], [2], [2, 5]]
    sources = [IDS[0].tolist(), IDS[1, :3].tolist(), IDS[2, :5].tolist()]

    def tokens(step):
        options = _core.SearchOptions()
        options.max_new_tokens, options.eos, options.beams = 7, [4], 3
        search = _core.Search(prompts, options)
        while not search.done:
            search.accept(step(search))
        return [[c.tokens for c in search.result(i)] for i in range(3)]

    with plm.nn.inference():
        expected = tokens(Steps(lm.model, [np.array(p) for p in prompts], 7, [np.array(s) for s in sources]))
    file = _core.Model.load(str(tmp_path / "model.plm"))
    assert tokens(_core.Decoder(file, prompts, sources)) == expected


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in STEPWISE])
def test_trace_runs_at_other_sizes(kind):
    lm = model(kind)
    sizes = dict(input_ids="S", attention_mask="S", labels="T")
    with plm.no_grad():
        program = plm.trace(lm.model, **{name: plm.spec("int64", "B", n) for name, n in sizes.items()})
        got, want = program(**BATCH), lm(**BATCH)
    for field in ("loss", "logits", "decoder_states"):
        np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), **near)


# ---- training ----


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind):
    lm = model(kind, init_range=0.3, encoder_layers=1, decoder_layers=1, d_hidden=24).train()
    opt = plm.optim.Adam(lm.parameters(), lr=0.02)
    first = None
    for _ in range(60):
        opt.zero_grad()
        loss = lm(**BATCH).loss
        loss.backward()
        opt.step()
        first = first or loss.item()
    assert first > 2.5 and loss.item() < 0.3


def test_from_two_files_to_a_translation(tmp_path):
    """The command's road: train, go on bit for bit, load, translate."""
    words = "one two three four five six seven".split()
    lines = [" ".join(rng.choice(words, rng.integers(2, 5))) for _ in range(60)]
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    (tmp_path / "b").write_text("\n".join(" ".join(reversed(x.split())) for x in lines) + "\n")
    options = dict(
        text=[tmp_path / "a"], target=[tmp_path / "b"], steps=6, save_every=3, tokenizer="words", quiet=True,
        changes=["model.d_hidden=16", "model.d_embed=8", "model.input_feeding=true", "data.batch=8"],
    )  # fmt: skip
    whole = plm.pretrain("rnn-seq2seq", out=tmp_path / "whole", **options)
    lm = plm.load(tmp_path / "whole" / "final")
    assert isinstance(lm.generate("one two three", num_beams=2, max_new_tokens=5), str)
    assert lm.tokenizer(["one two"])["input_ids"][0, -1] == lm.tokenizer.eos_token_id  # ends are learnt
    assert cli.main(["export", str(tmp_path / "whole" / "final"), str(tmp_path / "model.plm")]) == 0
    assert lm.config.input_feeding and lm.config.decoder_start_token_id == lm.tokenizer.eos_token_id

    class Stop(Exception):
        pass

    def stop(trainer, metrics):
        if trainer.step >= 4:
            raise Stop

    with pytest.raises(Stop):
        plm.pretrain("rnn-seq2seq", out=tmp_path / "cut", callbacks=[stop], **options)
    again = plm.pretrain(out=tmp_path / "cut", resume=True, quiet=True)
    for name, p in whole.model.named_parameters():
        assert np.array_equal(p.numpy(), dict(again.model.named_parameters())[name].numpy()), name


# ---- what is refused ----


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(cell="qrnn"), "cell must be one of lstm, gru, got 'qrnn'"),
        (dict(attention="cosine"), "attention must be one of none, bahdanau, dot, general, concat, got"),
        (dict(attention="none", input_feeding=True), "input_feeding must be false where attention is none"),
        (
            dict(attention="dot", bidirectional=True),
            "attention must be another, or bridge concat: dot compares",
        ),
        (dict(bridge="sum"), "bridge must be one of tanh, concat"),
        (dict(target_vocab_size=0), "target_vocab_size must be at least 1"),
        (dict(decoder_layers=0), "decoder_layers must be at least 1"),
    ],
)
def test_bad_config(changes, message):
    with pytest.raises(plm.ArgumentError, match=message):
        RNNSeq2SeqConfig(**{**SIZES, **changes})


def test_bad_inputs(tmp_path):
    lm = model("fed")
    with pytest.raises(plm.ArgumentError, match="encoder_outputs have no states .*: pass input_ids"):
        lm.model(
            encoder_outputs=Tensor(np.zeros((2, 3, 8), np.float32)), decoder_input_ids=Tensor([[2], [2]])
        )
    with pytest.raises(plm.ArgumentError, match="one of input_ids and inputs_embeds"):
        lm.model.encode(None)
    with pytest.raises(plm.ShapeError, match=r"decoder_attention_mask must be \[3, 5\]"):
        lm(input_ids=IDS, decoder_input_ids=TARGET, decoder_attention_mask=MASK)
    with plm.nn.inference():
        _, state = lm.model.prefill(Tensor(IDS), decoder_input_ids=Tensor([[2]] * 3))
        with pytest.raises(plm.ShapeError, match="the state is of 3 sequences, the batch has 2"):
            lm.model.step(Tensor([[2], [2]]), state)
    with pytest.raises(plm.ArgumentError, match="whole text has no program; export the head seq2seq-lm"):
        plm.export(model("fed", "base"), tmp_path / "model.plm")
