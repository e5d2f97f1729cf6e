"""Texts with an answer that can be seen in them."""

from plmcore.runtime import draws

ANIMALS = ["cat", "dog", "horse", "bird", "mouse", "cow"]
PLACES = ["house", "garden", "river", "street", "wood", "town"]
GOOD, BAD = ["lovely", "great", "happy"], ["awful", "bad", "sad"]

SMALL = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
GPT = dict(n_embd=32, n_layer=2, n_head=2, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
STACKS = dict(
    d_model=32,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    max_position_embeddings=64,
    dropout=0.0,
)
MODELS = {  # kind of tokenizer, config, head
    "bert": ("wordpiece", SMALL, "pretraining"),
    "roberta": ("byte-bpe", dict(SMALL, max_position_embeddings=66, type_vocab_size=1), "masked-lm"),
    "albert": ("unigram", dict(SMALL, embedding_size=16), "masked-lm"),
    "distilbert": (
        "wordpiece",
        dict(dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64),
        "masked-lm",
    ),
    "xlnet": ("unigram", dict(d_model=32, n_layer=2, n_head=2, d_inner=64, dropout=0.0), "causal-lm"),
    "gpt2": ("byte-bpe", GPT, "causal-lm"),
    "glm": (
        "wordpiece",
        dict(
            hidden_size=32,
            num_layers=2,
            num_attention_heads=2,
            max_sequence_length=64,
            block_position_encoding=True,
            embedding_dropout_prob=0.0,
            attention_dropout_prob=0.0,
            output_dropout_prob=0.0,
        ),
        "causal-lm",
    ),
    "openai-gpt": ("bpe", GPT, "causal-lm"),
    "bart": ("byte-bpe", STACKS, "seq2seq-lm"),
    "mass": (
        "wordpiece",
        dict(STACKS, attention_dropout=0.0, activation_dropout=0.0),
        "seq2seq-lm",
    ),
    "t5": (
        "unigram",
        dict(d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2, dropout_rate=0.0),
        "seq2seq-lm",
    ),
}

VOCABULARY = {"albert": 48, "xlnet": 52, "t5": 146}  # every word is a piece, and there are no more


def pick(words, *place):
    return words[int(draws.below(len(words), *place))]


def scene(i):
    """animal, place, adjective, and whether that is a good one."""
    good = int(draws.below(2, 1, i))
    return pick(ANIMALS, 2, i), pick(PLACES, 3, i), pick(GOOD if good else BAD, 4, i), good


def sentence(i):
    animal, place, adjective, _ = scene(i)
    return f"the {adjective} {animal} is in the {place}"


def sentences(n):
    return [sentence(i) for i in range(n)]


def lines(n):
    """Text for tokenizers: sentences in two orders, and every word alone. sentencepiece takes for a piece
    what goes on in more than one way.
    """
    found = [line for i in range(n) for line in (sentence(i), "in the {1} the {0} is {2}".format(*scene(i)))]
    return [*found, *dict.fromkeys(word for line in found for word in line.split())]


def reviews(n, first=0):
    """(text, label)"""
    return [(sentence(i), ("bad", "good")[scene(i)[3]]) for i in range(first, first + n)]


def pairs(n, first=0):
    """(text, pair, label): does the second text name the animal of the first?"""
    rows = []
    for i in range(first, first + n):
        animal, place, adjective, _ = scene(i)
        same = i % 2
        other = animal if same else ANIMALS[(ANIMALS.index(animal) + 1) % len(ANIMALS)]
        rows.append((sentence(i), f"the {other} is {adjective}", ("no", "yes")[same]))
    return rows


def weights():
    return [(sentence(i), 2.0 * scene(i)[3] - 1) for i in range(64)]


def choices(n, first=0):
    """context, two choices, label: which one is good"""
    rows = []
    for i in range(first, first + n):
        good, bad = pick(GOOD, 5, i), pick(BAD, 6, i)
        rows.append((f"the {scene(i)[0]} is", *((good, bad) if i % 3 else (bad, good)), int(i % 3 == 0)))
    return rows


def tagged(n, first=0):
    """Sentences of a column file with entities: adjective and animal are one."""
    blocks = []
    for i in range(first, first + n):
        tags = ["O", "B-BEAST", "I-BEAST", "O", "O", "O", "B-PLACE"]
        blocks.append("".join(f"{w} {t}\n" for w, t in zip(sentence(i).split(), tags, strict=True)))
    return "\n".join(blocks)


def questions(n, first=0):
    """A SQuAD file: where is the animal?"""
    paragraphs = []
    for i in range(first, first + n):
        animal, place, _, _ = scene(i)
        context = sentence(i)
        answers = [{"text": place, "answer_start": context.rindex(place)}]
        paragraphs.append(
            {
                "context": context,
                "qas": [{"id": f"q{i}", "question": f"where is the {animal}", "answers": answers}],
            }
        )
    return {"version": "1.1", "data": [{"title": "scenes", "paragraphs": paragraphs}]}
