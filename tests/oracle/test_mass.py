"""MASS against transformers' BART with scaled embeddings and moved rows of positions; files of fairseq."""

import argparse
import collections
import json

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed
from plmcore import cli

torch = parity.torch
pytestmark = pytest.mark.oracle
B, S, T = 4, 9, 6


def drawn(number):
    rng = np.random.default_rng(number)
    heads = rng.integers(1, 4, 2)
    return dict(
        vocab_size=int(rng.integers(20, 60)),
        d_model=int(2 * heads[0] * heads[1] * rng.integers(1, 4)),
        encoder_layers=int(rng.integers(1, 4)),
        decoder_layers=int(rng.integers(1, 4)),
        encoder_attention_heads=int(heads[0]),
        decoder_attention_heads=int(heads[1]),
        encoder_ffn_dim=int(rng.integers(5, 40)),
        decoder_ffn_dim=int(rng.integers(5, 40)),
        max_position_embeddings=int(rng.integers(S, 20)),
        activation_function=("gelu", "relu")[number % 2],
        pad_token_id=int(rng.integers(0, 4)),
        eos_token_id=5,
        decoder_start_token_id=5,
        tie_word_embeddings=number % 3 != 2,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
    )


def bart(config, folder):
    scaled = dict(config, scale_embedding=True)
    model = parity.reference("BartForConditionalGeneration", scaled, folder / "bart")
    model.final_logits_bias.zero_()
    return model


def names_of_mass(model, pad):
    """Its tensors as MASS has them: row 2 + p of BART's positions is row pad + 1 + p, row 1 is padding's."""
    found = {}
    for name, t in model.state_dict().items():
        t = t.detach().clone().contiguous()
        if "embed_positions" in name:
            t = torch.cat([torch.zeros(pad, t.shape[1]), t[1:]])
        found[name.replace("layernorm_embedding", "emb_layer_norm")] = t
    return found


def opened(model, config, folder):
    stored = names_of_mass(model, config["pad_token_id"])
    tensors = {name: plm.Tensor(t.numpy()) for name, t in stored.items()}
    if config["tie_word_embeddings"]:
        tensors = {n: t for n, t in tensors.items() if "embed_tokens" not in n and n != "lm_head.weight"}
    (folder / "mass").mkdir()
    plm.safetensors.write(folder / "mass" / "model.safetensors", tensors)
    settings = dict(config, model_type="mass", architectures=["MassForConditionalGeneration"])
    (folder / "mass" / "config.json").write_text(json.dumps(settings))
    lm = plm.load(folder / "mass")
    assert not lm.notes
    return lm


def place(model, side, places):
    """places [B, T]: of the tokens, -1 for padding."""
    table = getattr(model.model, side).embed_positions
    table.forward = lambda *args, **kwargs: torch.nn.functional.embedding(
        torch.tensor(places) + 2, table.weight
    )


def counted(ids, pad):
    real = ids != pad
    return np.where(real, real.cumsum(1) - 1, -1)


def batch(rng, config, side, placed):
    pad, V = config["pad_token_id"], config["vocab_size"]
    mask = parity.mask(rng, B, S, side) if side else np.ones((B, S), np.int64)
    ids = np.where(mask == 1, rng.integers(6, V, (B, S)), pad)
    real = parity.mask(rng, B, T, "right") == 1
    found = dict(
        input_ids=ids,
        attention_mask=mask,
        decoder_input_ids=np.where(real, rng.integers(6, V, (B, T)), pad),
        labels=np.where(real, rng.integers(0, V, (B, T)), -100),
    )
    if placed:
        found["decoder_position_ids"] = rng.integers(0, config["max_position_embeddings"], (B, T))
    return found


def theirs(model, inputs, pad):
    """Logits and loss of BART."""
    given = dict(inputs)
    places = given.pop("decoder_position_ids", None)
    place(model, "encoder", counted(inputs["input_ids"], pad))
    place(model, "decoder", counted(inputs["decoder_input_ids"], pad) if places is None else places)
    out = model(**{name: torch.tensor(x) for name, x in given.items()})
    return out.logits, out.loss


def compared(model, lm, inputs, pad):
    logits, loss = theirs(model, inputs, pad)
    got = lm(**inputs)
    parity.near("logits", got.logits.numpy(), logits.detach().numpy(), 1e-5)
    parity.near("loss", got.loss.numpy(), loss.detach().numpy(), 1e-5)
    return loss, got.loss


@pytest.mark.parametrize("number", range(8))
def test_drawn_configs(number, tmp_path):
    """Logits, loss, gradients and a step of SGD; padding on either side, with and without places."""
    config, rng = drawn(number), np.random.default_rng(100 + number)
    pad = config["pad_token_id"]
    model = bart(config, tmp_path)
    lm = opened(model, config, tmp_path)
    for side in (None, "right", "left"):
        for placed in (False, True):
            inputs = batch(rng, config, side, placed)
            model.zero_grad()
            lm.model.zero_grad()
            want, got = compared(model, lm, inputs, pad)
            want.backward()
            got.backward()
            check_gradients(model, lm, pad)
    with torch.no_grad():
        for p in model.parameters():
            p -= 0 if p.grad is None else 0.01 * p.grad
    plm.optim.SGD(lm.model.parameters(), lr=0.01).step()
    compared(model, lm, batch(rng, config, None, True), pad)
    lm.save(tmp_path / "saved")
    again = plm.load(tmp_path / "saved")
    assert np.array_equal(again(**inputs).logits.numpy(), lm(**inputs).logits.numpy())


def check_gradients(model, lm, pad):
    """Of every parameter; row pad of the positions has none."""
    theirs = {name: p.grad for name, p in model.named_parameters(remove_duplicate=False)}
    for name, ours in parity.gradients(lm).items():
        expected = theirs[name.replace("emb_layer_norm", "layernorm_embedding")].numpy()
        ours = ours.numpy()
        if "embed_positions" in name:
            assert not ours[: pad + 1].any()
            ours, expected = ours[pad + 1 :], expected[2:]
        parity.near(f"gradient of {name}", ours, expected, 1e-5)


# ---- files of fairseq ----


def fairseq(model, config, packed):
    """(args, state dict): as fairseq names them, query, key and value in one where `packed`."""
    found = collections.OrderedDict()
    for name, t in names_of_mass(model, config["pad_token_id"]).items():
        if name.startswith("model.") and "shared" not in name:
            found[name.removeprefix("model.")] = t
    for side in ("encoder", "decoder"):
        found[f"{side}.version"] = torch.tensor([3.0])
    if not config["tie_word_embeddings"]:
        found["decoder.embed_out"] = model.lm_head.weight.detach().clone()
    for name in [n for n in found if ".q_proj." in n] if packed else ():
        parts = [found.pop(name.replace("q_proj", f"{x}_proj")) for x in "qkv"]
        found[name.replace("q_proj.", "in_proj_")] = torch.cat(parts)
    args = argparse.Namespace(
        arch="transformer_mass_base",
        encoder_attention_heads=config["encoder_attention_heads"],
        decoder_attention_heads=config["decoder_attention_heads"],
        activation_fn=config["activation_function"],
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        adam_betas="(0.9, 0.98)",
        lr=[0.0005],
        update_freq=[8],
        restore_file=None,
        share_all_embeddings=config["tie_word_embeddings"],
    )
    return args, found


def dictionary(config, path):
    tokens = [f"t{i}" for i in range(config["vocab_size"])]
    for i, token in enumerate(("[UNK]", "[CLS]", "[MASK]"), config["pad_token_id"] + 1):
        tokens[i] = token
    tokens[config["pad_token_id"]], tokens[config["eos_token_id"]] = "[PAD]", "[SEP]"
    tokens = [t if t != "[SEP]" or i == config["eos_token_id"] else f"t{i}" for i, t in enumerate(tokens)]
    path.write_text("".join(f"{token} 1\n" for token in tokens))
    return path


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_files_of_fairseq(number, packed, zipped, tmp_path):
    config, rng = dict(drawn(number), pad_token_id=0), np.random.default_rng(number)
    model = bart(config, tmp_path)
    args, state = fairseq(model, config, packed)
    whole = {
        "args": args,
        "model": state,
        "optimizer_history": [{"criterion_name": "MaskedLm", "num_updates": 7}],
        "extra_state": {"epoch": 1, "val_loss": 3.5, "train_iterator": {"epoch": 1}},
        "last_optimizer_state": {"state": {0: {"step": 7, "exp_avg": torch.zeros(3)}}, "param_groups": []},
    }
    torch.save(whole, tmp_path / "c.pt", _use_new_zipfile_serialization=zipped)
    words = dictionary(config, tmp_path / "dict.txt")
    command = ["convert", tmp_path / "c.pt", tmp_path / "out", "--family", "mass", "--vocab", words]
    assert cli.main(list(map(str, command))) == 0
    lm = plm.load(tmp_path / "out")
    assert lm.config.decoder_start_token_id == lm.tokenizer.eos_token_id == 5
    assert lm.config.tie_word_embeddings == config["tie_word_embeddings"]
    compared(model, lm, batch(rng, config, "left", True), 0)
    # the published pre-trained files are state dicts alone
    torch.save(state, tmp_path / "c.pt", _use_new_zipfile_serialization=zipped)
    for side in ("encoder", "decoder"):
        command += ["--set", f"{side}_attention_heads={config[f'{side}_attention_heads']}"]
    command += ["--set", f"activation_function={config['activation_function']}"]
    command[2] = tmp_path / "alone"
    assert cli.main(list(map(str, command))) == 0
    compared(model, plm.load(tmp_path / "alone"), batch(rng, config, "right", False), 0)
