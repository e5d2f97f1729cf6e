"""What the readers of the docs have: python tests/docs_files.py FOLDER writes small models, texts and tables
with the names that the pages use.

The models have random weights. Their tokenizers are trained on the manual inside Python. Nothing is
downloaded.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import sys

import plmcore as plm
from plmcore.cli.demo import manual

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
MODELS = {  # directory -> config, head, tokenizer
    "gpt2": (
        {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 128},
        "causal-lm",
        "byte-bpe",
    ),
    "bert-base-uncased": (
        {"model_type": "bert", "max_position_embeddings": 128, **SMALL},
        "masked-lm",
        "wordpiece",
    ),
    "all-MiniLM-L6-v2": (
        {"model_type": "bert", "max_position_embeddings": 128, **SMALL},
        "base",
        "wordpiece",
    ),
    "t5-small": (
        {
            "model_type": "t5",
            "d_model": 32,
            "d_kv": 16,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 2,
            "decoder_start_token_id": 0,
        },
        "seq2seq-lm",
        "unigram",
    ),
}
FILMS = (
    ("a lovely film", "a fine story", "what a joy", "warm and clever"),
    ("a waste of time", "dull and long", "what a mess", "a poor script"),
)


def reviews(rows: int) -> list[tuple[str, str]]:
    """Texts that are easy to tell apart."""
    pairs = [(text, label) for pair in zip(*FILMS) for text, label in zip(pair, ("good", "bad"))]
    return [(f"{pairs[i % len(pairs)][0]} number {i}", pairs[i % len(pairs)][1]) for i in range(rows)]


def table(rows: list[tuple[str, ...]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def lines(objects: list[dict]) -> str:
    return "".join(json.dumps(o) + "\n" for o in objects)


def texts() -> dict[str, str]:
    text = manual()
    sums = [{"question": f"{i}+1", "answer": str(i + 1)} for i in range(9)]
    return {
        "book.txt": text[:60_000],
        "held-out.txt": text[60_000:64_000],
        "test.txt": text[64_000:66_000] + " a question of the test set, as long as it may be",
        "a.txt": text[66_000:67_000],
        "lines.txt": "The weather is lovely today.\nHe drove to the stadium.\n",
        "prompts.txt": "Once upon a time\nThe statement\n",
        "texts/one.txt": "To be, or not to be, that is the question.\n\n" + text[:30_000],
        "texts/two.txt": text[30_000:50_000],
        "wiki/page.txt": text[:60_000],
        "more.jsonl": lines([{"text": "One more."}]),
        "test.de": "die Katze sitzt\nder Hund lief\n",
        "test.en": "the cat sits\nthe dog ran\n",
        "train.tsv": table(reviews(32)),
        "dev.tsv": table(reviews(16)),
        "test.tsv": table(reviews(8)),
        "sst2.tsv": "sentence\tlabel\n" + table([(t, str(int(label == "good"))) for t, label in reviews(40)]),
        "topics.tsv": table([("loops", "for and while"), ("names", "global and nonlocal")] * 20),
        "train.jsonl": lines(sums),
        "test.jsonl": lines(sums[:3]),
        "choices.jsonl": lines([{"context": "The cat sat on the", "choices": [" mat", " moon"], "label": 0}]),
        "last-words.txt": "The cat sat on the mat\n",
        "glue/SST-2/train.tsv": "sentence\tlabel\nhide new secretions from the parental units \t0\n",
        "SWAG/val.csv": "sent1,sent2,ending0,ending1,ending2,ending3,label\nA man sits "
        "down.,He,eats.,flies.,melts.,rains.,0\n",
        "mail/train.tsv": "ham\tHello\nspam\tBuy\n",
    }


def main(folder: pathlib.Path) -> None:
    os.chdir(folder)
    for name, content in texts().items():
        pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(name).write_text(content, encoding="utf-8")
    pathlib.Path("b.txt.gz").write_bytes(gzip.compress(b"The manual says so.\n"))
    pathlib.Path("wiki.txt.gz").write_bytes(gzip.compress(manual()[:2_000].encode()))
    for name, (config, head, kind) in MODELS.items():
        tokenizer = plm.train_tokenizer("book.txt", kind=kind, vocab_size=600)
        plm.seed(0)
        lm = plm.from_config(config, head, vocab_size=tokenizer.vocab_size)
        lm.tokenizer = tokenizer
        lm.save(name)
    pooling = pathlib.Path("all-MiniLM-L6-v2")
    parts = [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Normalize"}]
    kinds = ("Transformer", "Pooling", "Normalize")
    for part, kind in zip(parts, kinds):
        part["type"] = f"sentence_transformers.models.{kind}"
    (pooling / "modules.json").write_text(json.dumps(parts))
    (pooling / "1_Pooling").mkdir()
    (pooling / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True})
    )


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
