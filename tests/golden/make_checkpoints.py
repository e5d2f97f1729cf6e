"""Writes checkpoints/mass: a tiny checkpoint of fairseq, its dict.txt, and what transformers' BART computes
with the same weights; and checkpoints/awd-lstm: a tiny language model of fastai, its vocabulary and logits;
for tests without PyTorch.

    python tests/golden/make_checkpoints.py mass|awd-lstm      (needs torch, and transformers or fastai)
"""

import pathlib
import pickle
import sys
import tempfile

import numpy as np

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent))


def mass():
    from oracle import test_mass as oracle

    folder = here / "checkpoints" / "mass"
    folder.mkdir(parents=True, exist_ok=True)
    config = dict(
        oracle.drawn(0),
        vocab_size=16,
        d_model=6,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=3,
        decoder_attention_heads=2,
        encoder_ffn_dim=7,
        decoder_ffn_dim=5,
        max_position_embeddings=oracle.S,
        pad_token_id=0,
    )
    with tempfile.TemporaryDirectory() as temporary:
        model = oracle.bart(config, pathlib.Path(temporary))
    args, state = oracle.fairseq(model, config, packed=True)
    oracle.torch.save({"args": args, "model": state, "extra_state": {"epoch": 1}}, folder / "checkpoint.pt")
    oracle.dictionary(config, folder / "dict.txt")
    inputs = oracle.batch(np.random.default_rng(0), config, "left", True)
    logits, loss = oracle.theirs(model, inputs, 0)
    arrays = {"logits": logits.detach().numpy(), "loss": loss.detach().numpy()}
    np.savez_compressed(folder / "inputs.npz", **inputs)
    np.savez_compressed(folder / "outputs.npz", **arrays)


def awd_lstm():
    from oracle import test_awd_lstm as oracle

    folder = here / "checkpoints" / "awd-lstm"
    folder.mkdir(parents=True, exist_ok=True)
    words = ["xxunk", "xxpad", "xxbos", "xxeos", *"abcdefgh"]
    oracle.V = len(words)
    model = oracle.language_model(emb_sz=5, n_hid=6, n_layers=2)
    oracle.torch.save(model.state_dict(), folder / "fwd.pth")
    (folder / "itos.pkl").write_bytes(pickle.dumps(words))
    ids = np.random.default_rng(0).integers(0, len(words), (2, 7))
    model.reset()
    logits = model(oracle.torch.tensor(ids))[0].detach().numpy()
    np.savez_compressed(folder / "outputs.npz", ids=ids, logits=logits)


if __name__ == "__main__":
    {"mass": mass, "awd-lstm": awd_lstm}[sys.argv[1]]()
