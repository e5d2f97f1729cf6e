"""Writes card.plm, a model file of format 2 with a card and a tokenizer, and card.npz, what it gave.

python tests/golden/make_card.py
"""

import pathlib

import numpy as np
import plmcore as plm

HERE = pathlib.Path(__file__).parent
TEXTS = ["the cat sat on the mat", "a dog ran, far away!"]


def main() -> None:
    corpus = HERE / "corpus.txt"
    corpus.write_text("the cat sat on the mat. a dog ran far away! the dog sat on a cat, and ran.\n" * 4)
    tokenizer = plm.train_tokenizer(corpus, kind="wordpiece", family="bert", vocab_size=60)
    corpus.unlink()
    sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    sizes |= dict(vocab_size=tokenizer.vocab_size, max_position_embeddings=16)
    config = {"model_type": "bert", **sizes}
    plm.seed(1)
    lm = plm.from_config({**config, "id2label": {"0": "calm", "1": "wild"}}, "sequence-classification").eval()
    plm.export(plm.LanguageModel(lm.model, tokenizer), HERE / "card.plm")
    session = plm.Program.load(HERE / "card.plm")
    np.savez(
        HERE / "card.npz",
        texts=TEXTS,
        labels=[c.label for c in session.classify(TEXTS)],
        probabilities=[c.probabilities for c in session.classify(TEXTS)],
        vectors=session.encode(TEXTS),
        ids=np.array(session.text.encode(TEXTS[1])[0]),
    )


if __name__ == "__main__":
    main()
