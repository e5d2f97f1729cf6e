import pathlib
import pydoc_data.topics

import plmcore as plm
import pytest

TEXT = "\n\n".join(text for _, text in sorted(pydoc_data.topics.topics.items()))[:60_000]
TEXT += "\nCafé naïve, 東京 と 日本語 😀👩‍👩‍👧 \u0000\u0007 \t 1,000, 2010, ﬁ ㎏ İ\n"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("text") / "topics.txt"
    file.write_text(TEXT, encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def trained(corpus, tmp_path_factory):
    """trained(kind, family=None): a tokenizer made of the text above, once."""
    made = {}

    def train(kind: str, family: str | None = None) -> plm.tokenizers.Tokenizer:
        if (kind, family) not in made:
            size = None if kind == "characters" else 600
            made[kind, family] = plm.train_tokenizer(corpus, kind=kind, family=family, vocab_size=size)
        folder = tmp_path_factory.mktemp("tokenizer")
        made[kind, family].save(folder)
        return plm.load_tokenizer(folder)  # a fresh one: tests may change it

    return train
