"""Objectives with the published vocabularies on real text, and beside transformers' data collators."""

import json
import os
import pathlib

import numpy as np
import plmcore as plm
import pytest
from plmcore import objectives
from plmcore.data import Corpus, sentences

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.oracle

DATA = pathlib.Path(os.environ.get("PLM_DATA", pathlib.Path(__file__).parents[2].parent / "shared" / "data"))
if not (DATA / "vocab-bert").exists():
    pytest.skip(
        f"no published vocabularies in {DATA}; PLM_DATA names another folder", allow_module_level=True
    )
FILES = {  # family -> files of its directory
    "bert": {"vocab.txt": "vocab-bert/bert-base-uncased-vocab.txt"},
    "gpt2": {"vocab.json": "vocab-gpt2/vocab.json", "merges.txt": "vocab-gpt2/merges.txt"},
    "roberta": {"vocab.json": "vocab-roberta/vocab.json", "merges.txt": "vocab-roberta/merges.txt"},
    "bart": {"vocab.json": "vocab-roberta/vocab.json", "merges.txt": "vocab-roberta/merges.txt"},
    "t5": {"spiece.model": "vocab-t5/t5_tokenizer_base.model"},
    "albert": {"spiece.model": "vocab-albert/spiece.model"},
}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """family -> its tokenizer and wikitext-2 in it, sentence by sentence."""
    lines = (DATA / "wikitext-2" / "wiki.test.raw").read_text(encoding="utf-8")[:150_000].split("\n")
    documents = [sentences.split(line.strip()) for line in lines if len(line) > 200]
    made = {}

    def of(family):
        if family not in made:
            folder = tmp_path_factory.mktemp(family)
            (folder / "config.json").write_text(json.dumps({"model_type": family}))
            for name, source in FILES[family].items():
                (folder / name).symlink_to(DATA / source)
            tokenizer = plm.load_tokenizer(folder)
            parts = [[s for s in tokenizer.encode_ids(d) if len(s)] for d in documents]
            sizes = [[len(s) for s in p] for p in parts]
            corpus = Corpus.from_ids([np.concatenate(p) for p in parts], tokenizer.vocab_size, sizes)
            made[family] = folder, tokenizer, corpus
        return made[family]

    return of


@pytest.mark.parametrize(
    "family, unit", [("bert", "token"), ("bert", "word"), ("roberta", "word"), ("albert", "ngram")]
)
def test_masks_on_real_text(published, family, unit):
    _, tokenizer, corpus = published(family)
    objective = objectives.MaskedLM(corpus, tokenizer, length=128, unit=unit)
    batch = objective.batch(np.arange(len(objective)), seed=0, epoch=0)
    chosen = batch["labels"] != -100
    restored = np.where(chosen, batch["labels"], batch["input_ids"])
    special = np.isin(restored, tokenizer.special_ids)
    assert (
        restored[~special].tolist()
        == np.asarray(corpus.ids)[~np.isin(corpus.ids, tokenizer.special_ids)].tolist()
    )
    assert not (chosen & special).any()
    assert abs(chosen.sum() / (~special).sum() - 0.15) < 0.01
    if unit == "word":  # a chosen piece that continues a word has its beginning chosen too
        # A document's first piece begins one.
        continues = (chosen & ~tokenizer.word_starts[restored])[:, 1:] & ~special[:, :-1]
        row, column = np.nonzero(continues)
        assert chosen[row, column].all() and len(row) > 100


@pytest.mark.parametrize(
    "name, family",
    [
        ("causal-lm", "gpt2"),
        ("next-sentence", "bert"),
        ("sentence-order", "albert"),
        ("denoising", "bart"),
        ("span-corruption", "t5"),
    ],
)
def test_rows_decode_to_the_text(published, name, family):
    """What is left of a text and what was taken from it are its own tokens."""
    _, tokenizer, corpus = published(family)
    objective = objectives.make(name, corpus, tokenizer, length=128)
    batch = objective.batch(np.arange(32), seed=0, epoch=0)
    assert batch["input_ids"].shape[1] <= 128 and batch["input_ids"].max() < tokenizer.vocab_size
    known = set(np.asarray(corpus.ids).tolist()) | set(tokenizer.special_ids.tolist())
    labels = batch["labels"][batch["labels"] != -100]
    assert set(labels.tolist()) <= known
    if name in ("denoising", "causal-lm"):
        text = [
            i for row in batch["labels"] for i in row[(row != -100) & ~np.isin(row, tokenizer.special_ids)]
        ]
        assert tokenizer.decode(text) == tokenizer.decode(np.asarray(corpus.ids)[: len(text)])


def test_masks_have_the_frequencies_of_the_collator(published):
    folder, tokenizer, corpus = published("bert")
    theirs = transformers.BertTokenizer.from_pretrained(folder)
    collator = transformers.DataCollatorForLanguageModeling(theirs, return_tensors="np", seed=0)
    objective = objectives.MaskedLM(corpus, tokenizer, length=128, packing="windows")
    plain = objectives.CausalLM(corpus, tokenizer, length=128, packing="documents")
    rows = plain.batch(np.arange(200), seed=0, epoch=0)
    examples = [ids[mask == 1].tolist() for ids, mask in zip(rows["input_ids"], rows["attention_mask"])]
    shares = []
    for batch in (
        collator([{"input_ids": e} for e in examples]),
        objective.batch(np.arange(200), seed=0, epoch=0),
    ):
        chosen = batch["labels"] != -100
        text = ~np.isin(np.where(chosen, batch["labels"], batch["input_ids"]), tokenizer.special_ids)
        ids, labels = batch["input_ids"][chosen], batch["labels"][chosen]
        shares.append(
            [chosen.sum() / text.sum(), (ids == tokenizer.mask_token_id).mean(), (ids == labels).mean()]
        )
    assert np.abs(np.subtract(*shares)).max() < 0.02, shares


def test_permutations_go_through_the_published_model(published, tmp_path):
    """The same loss from transformers' XLNet as from ours."""
    torch = pytest.importorskip("torch")
    _, tokenizer, corpus = published("albert")  # of sentencepiece too; XLNet's own vocabulary is not at hand
    batch = objectives.PermutationLM(corpus, tokenizer, length=64, block=32).batch(
        np.arange(4), seed=0, epoch=0
    )
    torch.manual_seed(0)
    config = transformers.XLNetConfig(
        vocab_size=tokenizer.vocab_size, d_model=16, n_layer=2, n_head=2, d_inner=32
    )
    theirs = transformers.XLNetLMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path)
    with torch.no_grad():
        loss = theirs(**{name: torch.from_numpy(value) for name, value in batch.items()}).loss.item()
    assert abs(plm.load(tmp_path)(**batch).loss.item() - loss) < 1e-4
