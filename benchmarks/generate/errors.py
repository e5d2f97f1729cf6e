"""How far quantised weights move a GPT-2's logits, beside CTranslate2's int8 on the same weights.

    python benchmarks/generate/errors.py [MODEL_DIR] [--layers N]

Without a directory: GPT-2 124M with random weights. Errors are |logits - float32 logits| / |float32 logits|,
Euclidean, over 4 x 64 random tokens, each library against its own float32. "same choice": how often the
likeliest token stays.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def ours(folder: Path, ids: np.ndarray) -> np.ndarray:
    import plmcore

    with plmcore.no_grad():
        return plmcore.load(folder)(input_ids=ids).logits.numpy()


def theirs(folder: Path, ids: np.ndarray, compute_type: str) -> np.ndarray:
    import ctranslate2

    model = ctranslate2.Generator(str(folder), device="cpu", compute_type=compute_type)
    return np.asarray(model.forward_batch([[f"w{i}" for i in row] for row in ids]))


def line(name: str, exact: np.ndarray, found: np.ndarray) -> str:
    error = np.linalg.norm((found - exact).astype(np.float64)) / np.linalg.norm(exact.astype(np.float64))
    same = (found.argmax(-1) == exact.argmax(-1)).mean()
    return f"{name:<22} error {100 * error:7.4f} %   same choice {100 * same:6.2f} %"


def main() -> None:
    from generate import write

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", metavar="MODEL_DIR", help="a GPT-2 directory")
    parser.add_argument(
        "--layers", type=int, default=0, metavar="N", help="of the random model (default: all)"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        source = args.folder
        if source is None:
            source = base / "model"
            write.directory(source, "gpt2", args.layers)
        import plmcore

        config = plmcore.load(source).config
        ids = np.random.default_rng(7).integers(0, config.vocab_size, (4, min(64, config.n_positions)))
        exact = ours(source, ids)
        for weights in ("int8", "bfloat16"):
            plmcore.quantize(source, weights, out=base / weights)
            print(line(f"plmcore {weights}", exact, ours(base / weights, ids)), flush=True)
        write.ctranslate2(base / "ctranslate2", source)
        model = base / "ctranslate2" / "model"
        exact = theirs(model, ids, "float32")
        print(line("CTranslate2 int8", exact, theirs(model, ids, "int8")))


if __name__ == "__main__":
    main()
