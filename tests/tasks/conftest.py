"""Small model directories with tokenizers, and files of examples that a small model learns."""

import pathlib
import sys

import plmcore as plm
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import samples


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(samples.lines(400)))
    return path


@pytest.fixture(scope="session")
def prose(text):
    """Documents of four sentences."""
    lines = [f"The{s[3:]}." + "\n" * (i % 4 == 3) for i, s in enumerate(samples.sentences(200))]
    path = text.with_name("prose.txt")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="session")
def directory(text, tmp_path_factory):
    """family -> a directory with fresh weights and a tokenizer trained on the samples."""
    made = {}

    def make(family):
        if family not in made:
            kind, config, head = samples.MODELS[family]
            tokenizer = plm.train_tokenizer(
                [text], kind=kind, vocab_size=samples.VOCABULARY.get(family, 400), family=family
            )
            plm.seed(3)
            special = {f"{r}_token_id": getattr(tokenizer, f"{r}_token_id") for r in ("pad", "bos", "eos")}
            special = {
                k: v
                for k, v in special.items()
                if v is not None and hasattr(plm.models.family(family).CONFIG(), k)
            }
            if family in ("bart", "mass", "t5"):
                special["decoder_start_token_id"] = (
                    tokenizer.pad_token_id if family == "t5" else tokenizer.eos_token_id
                )
            lm = plm.from_config(
                {"model_type": family, **config, **special}, head, vocab_size=tokenizer.vocab_size
            )
            lm.tokenizer = tokenizer
            made[family] = tmp_path_factory.mktemp(family)
            lm.save(made[family])
        return made[family]

    return make


@pytest.fixture
def table(tmp_path):
    """(name, rows) -> a TSV file."""

    def write(name, rows):
        path = tmp_path / name
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
        return path

    return write
