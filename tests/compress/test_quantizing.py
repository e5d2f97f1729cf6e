"""plm.quantize, and what opens of it, for every family."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import plmcore as plm
import pytest
from plmcore import nn, safetensors
from small_models import CAUSAL, GPT2, MASKED, SEQ2SEQ, STACKS

XLNET = dict(model_type="xlnet", d_model=16, n_layer=2, n_head=2, d_inner=24)
CASES = {
    **{f"{name} causal-lm": (config, "causal-lm") for name, config in CAUSAL.items()},
    **{f"{name} masked-lm": (config, "masked-lm") for name, config in MASKED.items()},
    **{f"{name} seq2seq-lm": (config, "seq2seq-lm") for name, config in SEQ2SEQ.items()},
    "xlnet causal-lm": (XLNET, "causal-lm"),
    "xlnet classes": (XLNET, "sequence-classification"),
    "mbart seq2seq-lm": (
        dict(STACKS, model_type="mbart", max_position_embeddings=32, decoder_start_token_id=2),
        "seq2seq-lm",
    ),
    "marian seq2seq-lm": (
        dict(
            STACKS, model_type="marian", max_position_embeddings=32, pad_token_id=1, decoder_start_token_id=1
        ),
        "seq2seq-lm",
    ),
    "t5 gated, untied": (
        dict(SEQ2SEQ["t5"], feed_forward_proj="gated-gelu", tie_word_embeddings=False),
        "seq2seq-lm",
    ),
    "gpt2 untied": (dict(GPT2, tie_word_embeddings=False), "causal-lm"),
    "gpt2 classes": (dict(GPT2, pad_token_id=0), "sequence-classification"),
    "xlm-roberta": (dict(MASKED["roberta"], model_type="xlm-roberta"), "masked-lm"),
    "bert pretraining": (MASKED["bert"], "pretraining"),
    "bert base": (MASKED["bert"], "base"),
    "distilbert classes": (MASKED["distilbert"], "sequence-classification"),
    "albert answers": (MASKED["albert"], "question-answering"),
}
IDS = np.random.default_rng(0).integers(3, 40, (2, 7))
FIELDS = ("logits", "prediction_logits", "start_logits", "last_hidden_state")


def saved(folder, name, vocab_size=40, **more):
    """A directory with weights and biases that are far from 0."""
    config, head = CASES[name]
    plm.seed(7)
    lm = plm.from_config({**config, **more}, head, vocab_size=vocab_size).eval()
    # T5 does not divide its scores: more makes every choice a hard one.
    widen = 1.0 if config["model_type"] == "t5" else 8.0
    rng = np.random.default_rng(1)
    state = {n: np.array(v.numpy()) for n, v in lm.model.state_dict().items()}
    for n, v in state.items():
        state[n] = v * widen if v.ndim == 2 else v + (0.1 * rng.standard_normal(v.shape)).astype(np.float32)
    lm.model.load_state_dict(state)
    lm.save(folder)
    return lm


def run(lm):
    inputs = {"input_ids": IDS}
    if isinstance(lm.model, (plm.models.seq2seq.Seq2SeqLM,)):
        inputs["decoder_input_ids"] = IDS[:, :5]
    out = lm(**inputs)
    return next(out[f] for f in FIELDS if f in out).numpy().astype(np.float64)


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(a)


@pytest.mark.parametrize("weights", ["int8", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_every_family(name, weights, tmp_path):
    saved(tmp_path / "model", name)
    assert plm.quantize(tmp_path / "model", weights, out=tmp_path / "small") == tmp_path / "small"
    before, small = plm.load(tmp_path / "model"), plm.load(tmp_path / "small")
    assert small.head == before.head and small.model.num_parameters() == before.model.num_parameters()
    layers = [m for m in small.model.modules() if isinstance(m, (nn.QuantizedLinear, nn.QuantizedEmbedding))]
    assert len(layers) >= sum(isinstance(m, nn.Linear) for m in before.model.modules())
    assert not any(type(m) is nn.Linear for m in small.model.modules())
    assert {layer.weight.dtype for layer in layers} == {weights}
    assert {p.dtype for p in small.parameters()} == {"float32"} and small.config.dtype == "float32"

    # The same weights in float32 differ by the rounding of activations alone, to 13 bits or 8; those before
    # by that of weights, to 8.
    rounded = plm.load(tmp_path / "small", dtype="float32")
    levels = 4095 if small.head in ("causal-lm", "seq2seq-lm") else 127
    limit = 4 / levels if weights == "int8" else 1e-6
    assert distance(run(rounded), run(small)) < limit
    assert distance(run(before), run(small)) < 0.02 + limit

    small.save(tmp_path / "again")
    again = plm.load(tmp_path / "again")
    assert np.array_equal(run(small), run(again)) and again.config == small.config
    a, b = (safetensors.read(tmp_path / d)[0] for d in ("small", "again"))
    assert all(np.array_equal(a[n].numpy(), b[n].numpy()) for n in b)
    assert set(a) - set(b) == set()
    for file in ("model.safetensors", "config.json"):
        assert (tmp_path / "small" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][1].endswith("-lm") and "bert" not in n])
def test_generate_and_score(name, tmp_path):
    saved(tmp_path / "model", name)
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    lm = plm.load(tmp_path / "small")
    options = dict(max_new_tokens=5, eos_token_id=None, pad_token_id=0)
    greedy = lm.generate(IDS, **options)
    assert np.array_equal(greedy, lm.generate(IDS, num_beams=1, **options))
    assert lm.generate(IDS, num_beams=3, **options).shape == greedy.shape
    # One prompt alone has the same tokens: a row's rounding depends on nothing but the row.
    assert np.array_equal(lm.generate(IDS[1:], **options)[0], greedy[1])


def test_shared_weights_are_shared_and_mapped(tmp_path):
    # Small tensors are copied.
    plm.from_config(dict(GPT2, vocab_size=5000), "causal-lm").save(tmp_path / "model")
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    lm = plm.load(tmp_path / "small")
    tokens, head = lm.model.body.embeddings.tokens, lm.model.lm_head
    assert tokens.weight is head.weight and tokens.scale is head.scale
    tensors, _ = safetensors.read(tmp_path / "small")
    assert "lm_head.weight" not in tensors and tensors["body.embeddings.tokens.weight"].dtype == "int8"
    assert tensors["body.embeddings.positions.weight"].dtype == "float32"
    assert tensors["body.blocks.0.attn.qkv.weight"].shape == (48, 16)
    assert tensors["body.blocks.0.attn.qkv.scale"].shape == (48,)
    mapped = [
        line.split()[0].split("-") for line in open("/proc/self/maps") if str(tmp_path / "small") in line
    ]
    address = head.weight.numpy().__array_interface__["data"][0]
    assert any(int(a, 16) <= address < int(b, 16) for a, b in mapped)


def test_the_weights_are_rounded_as_documented(tmp_path):
    lm = saved(tmp_path / "model", "bert masked-lm")
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    tensors, metadata = safetensors.read(tmp_path / "small")
    for name, weight in lm.model.state_dict().items():
        if tensors[name].dtype == "int8":
            w, q, scale = (
                weight.numpy(),
                tensors[name].numpy(),
                tensors[name.replace("weight", "scale")].numpy(),
            )
            assert np.array_equal(scale, np.abs(w).max(1) / np.float32(127))
            assert np.array_equal(q, np.rint(w / np.where(scale > 0, scale, 1)[:, None]))
        else:
            assert np.array_equal(tensors[name].numpy(), weight.numpy())
    assert metadata == {"format": "pt"}


def test_config_and_companions(tmp_path):
    saved(tmp_path / "model", "gpt2 causal-lm")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(
        json.dumps({**config, "novelty": [1, 2], "dtype": "float16"})
    )
    (tmp_path / "model" / "vocab.json").write_text("{}")
    (tmp_path / "model" / "merges.txt").write_text("#version: 0.2\n")
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    after = json.loads((tmp_path / "small" / "config.json").read_text())
    assert after.pop("quantization_config") == {"method": "plmcore", "weights": "int8"}
    assert after == {**config, "novelty": [1, 2], "dtype": "float32"}
    assert (tmp_path / "small" / "vocab.json").exists() and (tmp_path / "small" / "merges.txt").exists()


def test_the_same_bytes_every_time(tmp_path):
    saved(tmp_path / "model", "bart seq2seq-lm")
    seen = []
    for out in ("a", "b"):
        plm.quantize(tmp_path / "model", "int8", out=tmp_path / out, progress=lambda *n: seen.append(n))
    count = len(safetensors.read(tmp_path / "a")[0])
    assert seen == [(i, count) for i in range(1, count + 1)] * 2
    digests = [
        [
            hashlib.sha256((tmp_path / out / f).read_bytes()).hexdigest()
            for f in ("model.safetensors", "config.json")
        ]
        for out in ("a", "b")
    ]
    assert digests[0] == digests[1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_directories_of_other_dtypes(tmp_path, dtype):
    saved(tmp_path / "a", "gpt2 causal-lm")
    plm.load(tmp_path / "a", dtype=dtype).save(tmp_path / "b")
    plm.quantize(tmp_path / "b", "int8", out=tmp_path / "small")
    assert {t.dtype for t in safetensors.read(tmp_path / "small")[0].values()} == {"int8", "float32"}
    assert distance(run(plm.load(tmp_path / "a")), run(plm.load(tmp_path / "small"))) < 0.04


def test_shards_are_read_and_written(tmp_path):
    lm = saved(tmp_path / "a", "bert masked-lm")
    lm.save(tmp_path / "b", max_shard_bytes=3000)
    for name in "ab":
        plm.quantize(tmp_path / name, "int8", out=tmp_path / f"{name}8")
    assert (tmp_path / "a8" / "model.safetensors").read_bytes() == (
        tmp_path / "b8" / "model.safetensors"
    ).read_bytes()
    small = plm.load(tmp_path / "a8")
    small.save(tmp_path / "c8", max_shard_bytes=1000)
    assert len(list((tmp_path / "c8").glob("model-*"))) > 1
    assert np.array_equal(run(small), run(plm.load(tmp_path / "c8")))


def test_tables_that_a_file_unties_stay_apart(tmp_path):
    saved(tmp_path / "model", "gpt2 causal-lm")
    tensors = {n: np.array(t.numpy()) for n, t in safetensors.read(tmp_path / "model")[0].items()}
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"] * 2
    safetensors.write(tmp_path / "model", tensors)
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    lm = plm.load(tmp_path / "small")
    tokens, head = lm.model.body.embeddings.tokens, lm.model.lm_head
    assert tokens.scale is not head.scale
    np.testing.assert_allclose(head.scale.numpy(), 2 * tokens.scale.numpy())
    assert distance(run(plm.load(tmp_path / "model")), run(lm)) < 0.02


def test_the_head_to_keep(tmp_path):
    saved(tmp_path / "model", "bert pretraining")
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small", head="base")
    lm = plm.load(tmp_path / "small")
    assert lm.head == "base" and not any(
        n.startswith(("body.", "predictions")) for n in lm.model.state_dict()
    )
    assert distance(run(plm.load(tmp_path / "model", head="base")), run(lm)) < 0.02


def test_memory_holds_one_tensor(tmp_path):
    """A model of 20 layers of 4 MB: beside what the library takes, a few of them."""
    config = dict(GPT2, n_embd=512, n_layer=8, n_head=8)
    plm.from_config(config, "causal-lm", vocab_size=64).save(tmp_path / "model")
    script = (
        "import sys, plmcore as plm\nfrom plmcore import compress\n"
        "def anonymous(): return "
        "int(open('/proc/self/smaps_rollup').read().split('Anonymous:')[1].split()[0])\n"
        "before, most = anonymous(), 0\nfrom plmcore.compress import quantizing\n"
        "value = quantizing.Source.value\ndef watched(self, "
        "name):\n    global most\n    result = value(self, name)\n    most = max(most, "
        "anonymous())\n    return result\nquantizing.Source.value = watched\n"
        "plm.quantize(sys.argv[1], 'int8', out=sys.argv[2])\n"
        "print(most - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model"), str(tmp_path / "small")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    weights = (tmp_path / "model" / "model.safetensors").stat().st_size // 1024
    assert weights > 90_000 and int(done.stdout) < weights // 2


# ---- what is refused ----


def test_errors(tmp_path):
    saved(tmp_path / "model", "gpt2 causal-lm")
    with pytest.raises(
        plm.ArgumentError, match="quantize: the weights must be one of int8, bfloat16, got 'int4'"
    ):
        plm.quantize(tmp_path / "model", "int4", out=tmp_path / "x")
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        plm.quantize(tmp_path / "nothing", "int8", out=tmp_path / "x")
    with pytest.raises(FileExistsError, match="must be a new directory or an empty one"):
        plm.quantize(tmp_path / "model", "int8", out=tmp_path / "model")
    with pytest.raises(plm.ArgumentError, match="gpt2 has no head 'fun'"):
        plm.quantize(tmp_path / "model", "int8", out=tmp_path / "x", head="fun")
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    for weights in ("int8", "bfloat16"):
        with pytest.raises(
            plm.ArgumentError, match="small' has int8 weights; take the directory it was made from"
        ):
            plm.quantize(tmp_path / "small", weights, out=tmp_path / "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "small"]


def test_a_broken_source_leaves_nothing(tmp_path):
    saved(tmp_path / "model", "gpt2 causal-lm")
    tensors = {n: np.array(t.numpy()) for n, t in safetensors.read(tmp_path / "model")[0].items()}
    tensors["transformer.h.1.mlp.c_fc.weight"][3, 4] = np.nan
    safetensors.write(tmp_path / "model", tensors)
    with pytest.raises(
        plm.ArgumentError, match="'body.blocks.1.mlp.up.weight' has values that are not finite"
    ):
        plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    del tensors["transformer.h.1.mlp.c_fc.weight"]
    safetensors.write(tmp_path / "model", tensors)
    with pytest.raises(plm.FormatError, match="missing: transformer.h.1.mlp.c_fc.weight"):
        plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_an_empty_directory_is_taken(tmp_path):
    saved(tmp_path / "model", "gpt2 causal-lm")
    (tmp_path / "small").mkdir()
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    assert plm.load(tmp_path / "small").head == "causal-lm"


def test_training_is_refused(tmp_path):
    saved(tmp_path / "model", "gpt2 causal-lm")
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    lm = plm.load(tmp_path / "small")
    with pytest.raises(plm.ArgumentError, match="has int8 weights, which cannot be trained"):
        lm.train()
    out = lm(input_ids=IDS, labels=IDS)
    assert np.isfinite(out.loss.numpy())
    with pytest.raises(plm.GraphError, match="requires_grad"):
        out.loss.backward()
    with pytest.raises(plm.ArgumentError, match="LoRA: the model has int8 weights"):
        plm.tasks.lora.attach(lm.model, 2, 4, ["attn.qkv"])
    (tmp_path / "t.tsv").write_text("good\t1\nbad\t0\n" * 8)
    with pytest.raises(
        plm.ArgumentError, match="finetune: .*small' has int8 weights; take the directory it was made"
    ):
        plm.finetune(
            tmp_path / "small", "classification", train=tmp_path / "t.tsv", out=tmp_path / "run", quiet=True
        )


def test_ordinary_weights_of_quantised_ones_can_be_trained(tmp_path):
    saved(tmp_path / "model", "gpt2 causal-lm")
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    lm = plm.load(tmp_path / "small", dtype="float32").train()
    lm(input_ids=IDS, labels=IDS).loss.backward()
    plm.optim.SGD(lm.parameters(), lr=0.1).step()
    lm.save(tmp_path / "again")
    assert "quantization_config" not in json.loads((tmp_path / "again" / "config.json").read_text())
    assert {t.dtype for t in safetensors.read(tmp_path / "again")[0].values()} == {"float32"}
    assert plm.load(tmp_path / "small", dtype="bfloat16").config.dtype == "bfloat16"
