import functools
import json
import random

import plmcore as plm
import pytest
from plmcore.tokenizers import TokenizerError

BERT = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat dog ##s".split()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(BERT))
    return tmp_path


def settings(folder, **values):
    (folder / "tokenizer_config.json").write_text(json.dumps(values))


def test_limits_and_case(folder):
    settings(folder, model_max_length=4, do_lower_case=False)
    tokenizer = plm.load_tokenizer(folder)
    assert tokenizer("the cat sat").input_ids.tolist() == [2, 5, 6, 3]
    assert tokenizer("the cat sat", max_length=3).input_ids.tolist() == [2, 5, 3]
    assert tokenizer("The").input_ids.tolist() == [2, 1, 3]  # not lowered
    assert plm.load_tokenizer(folder, do_lower_case=True)("The").input_ids.tolist() == [2, 5, 3]
    settings(folder, model_max_length=int(1e30), padding_side="left")
    tokenizer = plm.load_tokenizer(folder)
    assert tokenizer.max_length is None and tokenizer(["the cat", "the"]).input_ids[1, 0] == 0


def test_tokenizer_json_comes_first(folder):
    plm.load_tokenizer(folder).save(folder)
    (folder / "vocab.txt").write_text("nothing")
    assert plm.load_tokenizer(folder)("the dogs").input_ids.tolist() == [2, 5, 8, 9, 3]


def test_config_json_tells_the_family(tmp_path):
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "ab", "<mask>"]
    (tmp_path / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    assert plm.load_tokenizer(tmp_path).family.name == "roberta"  # by its vocabulary
    for name, row in (("gpt2", [6]), ("bart", [0, 6, 2]), ("roberta", [0, 6, 2])):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": name}))
        if name == "gpt2":
            with pytest.raises(
                plm.FormatError, match=r"lacks special tokens of the family gpt2: '<\|endoftext\|>' \(unk\)"
            ):
                plm.load_tokenizer(tmp_path)
            assert plm.load_tokenizer(tmp_path, unk_token="<unk>")("ab").input_ids.tolist() == row
        else:
            tokenizer = plm.load_tokenizer(tmp_path)
            assert tokenizer("ab").input_ids.tolist() == row and tokenizer.family.name == name
            assert tokenizer("a <mask>").input_ids.tolist() == [0, 4, 7, 2]  # which takes the space before it
    settings(tmp_path, tokenizer_class="RobertaTokenizerFast")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    assert plm.load_tokenizer(tmp_path).family.name == "roberta"  # tokenizer_config.json knows better
    assert plm.load_tokenizer(tmp_path, family="bart").family.name == "bart"
    with pytest.raises(ValueError, match="no tokenizer family 'bort'"):
        plm.load_tokenizer(tmp_path, family="bort")


def test_gpt1(tmp_path):
    (tmp_path / "vocab.json").write_text(
        json.dumps({"<unk>": 0, "a": 1, "b</w>": 2, "ab</w>": 3, "a</w>": 4})
    )
    (tmp_path / "merges.txt").write_text("a b</w>\n")
    tokenizer = plm.load_tokenizer(tmp_path)
    assert tokenizer.family.name == "openai-gpt" and tokenizer("AB a x").input_ids.tolist() == [3, 4, 0]
    assert tokenizer.decode([3, 4]) == "ab a"


def test_added_tokens_files(folder):
    (folder / "added_tokens.json").write_text(json.dumps({"<b>": 11, "<a>": 10}))
    assert plm.load_tokenizer(folder)("<a><b>").input_ids.tolist() == [2, 10, 11, 3]
    settings(
        folder,
        added_tokens_decoder={
            "12": {"content": "<c>", "special": True},
            "0": {"content": "[PAD]", "special": True},
        },
    )
    tokenizer = plm.load_tokenizer(folder)
    assert (
        tokenizer("<c>").input_ids.tolist() == [2, 12, 3]
        and 12 in tokenizer.special_ids
        and not tokenizer.changed
    )
    (folder / "added_tokens.json").write_text(json.dumps({"<b>": 11}))
    with pytest.raises(plm.FormatError, match="'<b>' should have the id 11, but 10 comes next"):
        plm.load_tokenizer(folder)
    (folder / "added_tokens.json").write_text(json.dumps({"<b>": "x"}))
    with pytest.raises(plm.FormatError, match="added_tokens.json' cannot be read: the id of '<b>' is 'x'"):
        plm.load_tokenizer(folder)
    (folder / "added_tokens.json").write_text(json.dumps({"<b>": 10}))
    settings(folder, pad_token="<b>", additional_special_tokens=["cat", "absent"])
    tokenizer = plm.load_tokenizer(folder)
    assert (
        tokenizer.pad_token_id == 10
        and tokenizer.id_of("cat") in tokenizer.special_ids
        and tokenizer.id_of("absent") is None
    )
    settings(folder, added_tokens_decoder={"x": 3})
    with pytest.raises(plm.FormatError, match="tokenizer_config.json' cannot be read"):
        plm.load_tokenizer(folder)


def test_special_tokens_of_other_names(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(["<p>", "[UNK]", "<c>", "[SEP]", "[MASK]", "the"]))
    (tmp_path / "special_tokens_map.json").write_text(
        json.dumps({"cls_token": "<c>", "pad_token": {"content": "<p>"}})
    )
    tokenizer = plm.load_tokenizer(tmp_path)
    assert (
        tokenizer("the").input_ids.tolist() == [2, 5, 3]
        and tokenizer.pad_token_id == 0
        and tokenizer.cls_token == "<c>"
    )


def test_directories_without_a_tokenizer(tmp_path):
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(FileNotFoundError, match="has no tokenizer.json and no vocab.txt"):
            plm.load_tokenizer(folder)


def test_vocabularies_that_lack_special_tokens(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\nthe\n")
    with pytest.raises(plm.FormatError, match=r"lacks special tokens of the family bert: '\[SEP\]' \(sep\)"):
        plm.load_tokenizer(tmp_path)
    (tmp_path / "vocab.txt").write_text("")
    with pytest.raises(plm.FormatError, match="lacks special tokens"):
        plm.load_tokenizer(tmp_path)


BASE = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None,
    "decoder": None,
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {"[UNK]": 0, "a": 1, "##b": 2},
    },
}
A, B = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
X = {"SpecialToken": {"id": "[X]", "type_id": 0}}


def template(single, pair, **special):
    special = {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in special.items()}
    return dict(
        post_processor={
            "type": "TemplateProcessing",
            "single": single,
            "pair": pair,
            "special_tokens": special,
        }
    )


def unigram(**changes):
    return dict(
        model={
            "type": "Unigram",
            "unk_id": 0,
            "vocab": [["<unk>", 0.0], ["a", -1.0]],
            "byte_fallback": False,
            **changes,
        }
    )


def bpe(vocabulary, merges, **changes):
    return dict(model={"type": "BPE", "vocab": vocabulary, "merges": merges, **changes})


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(model=None), "cannot be read"),
        (dict(model={**BASE["model"], "vocab": {"[UNK]": 0, "a": -1}}), "cannot be read: invalid value"),
        (
            dict(model={**BASE["model"], "vocab": {"[UNK]": 0, "a": 4_000_000_000}}),
            "2 tokens, and one of them the id 4000000000",
        ),
        (bpe({"a": 0}, ["a b"]), "out of vocabulary"),
        (bpe({"a": 0, "b": 1, "ab": 2}, ["a b c"]), "cannot be read"),
        # a panic
        (
            bpe({"a": 0, "b": 1, "ab": 2}, ["a b"], continuing_subword_prefix="x" * 10),
            "cannot be read: range end index",
        ),
        (unigram(unk_id=99), "cannot be read"),
        (unigram(vocab=[]), "cannot be read"),
        (dict(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}), "cannot be read"),
        (dict(normalizer={"type": "Replace", "pattern": {"Regex": "("}, "content": "x"}), "cannot be read"),
        (template([X, A], [A, B]), r"cannot be read: '\[X\]'"),
        (template([X, A], [A, B], **{"[X]": 4_000_000_000}), "adds the id 4000000000; the vocabulary has 3"),
        (template([], [A, B]), "each of 1 texts once"),
        (template([A, A], [A, B]), "each of 1 texts once"),
        (template([A], [A]), "each of 2 texts once"),
        (
            dict(post_processor={"type": "BertProcessing", "sep": ["x", 77], "cls": ["[UNK]", 0]}),
            "adds the id 77",
        ),
    ],
)
def test_hostile_tokenizer_json(tmp_path, changes, message):
    (tmp_path / "tokenizer.json").write_text(json.dumps({**BASE, **changes}))
    with pytest.raises(plm.FormatError, match=message):
        plm.load_tokenizer(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "null", "{}", "[" * 5000, b"\xff\xfe"])
def test_what_is_no_tokenizer_json(tmp_path, text):
    (tmp_path / "tokenizer.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(plm.FormatError, match="tokenizer.json' cannot be read"):
        plm.load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(model={**BASE["model"], "vocab": {"a": 0}}), "Missing .UNK. token"),
        (unigram(unk_id=None), "unk_id. is missing"),
        # a panic
        (
            dict(normalizer={"type": "Precompiled", "precompiled_charsmap": "CAAAAP////////9hYmM="}),
            "index out of bounds",
        ),
        (dict(pre_tokenizer={"type": "FixedLength", "length": 0}), "chunk size must be non-zero"),  # a panic
        (
            dict(
                pre_tokenizer={
                    "type": "Split",
                    "pattern": {"Regex": "(a+)+$"},
                    "behavior": "Isolated",
                    "invert": False,
                }
            ),
            "retry-limit",
        ),
    ],
)
def test_files_that_fail_on_text(tmp_path, changes, message):
    (tmp_path / "tokenizer.json").write_text(json.dumps({**BASE, **changes}))
    tokenizer = plm.load_tokenizer(tmp_path)
    with pytest.raises(TokenizerError, match=message):
        tokenizer(["x é " + "a" * 40 + "!"])


JUNK = [
    None,
    -1,
    0,
    2**31,
    2**32,
    2**63,
    1e308,
    "",
    "x",
    "\ud800",
    "[UNK]",
    [],
    {},
    True,
    [[]],
    {"type": "x"},
    "ByteLevel",
    "Sequence",
]


def places(value, path=()):
    """Every place in a JSON value, the first few of long lists."""
    yield path
    items = list(value.items())[:20] if isinstance(value, dict) else []
    if isinstance(value, list):
        items = enumerate(value[:5])
    for key, inner in items:
        yield from places(inner, (*path, key))


@pytest.mark.parametrize(
    "kind, family", [("wordpiece", "bert"), ("byte-bpe", "roberta"), ("words", None), ("characters", None)]
)
def test_mutilated_files_work_or_are_refused(trained, tmp_path, kind, family):
    trained(kind, family).save(tmp_path)
    whole, outcomes = (
        {name: (tmp_path / name).read_text() for name in ("tokenizer.json", "tokenizer_config.json")},
        set(),
    )
    for seed in range(60):
        r = random.Random(seed)
        for name in whole:
            values = json.loads(whole[name])
            *path, last = r.choice([p for p in places(values) if p])
            inner = functools.reduce(lambda v, key: v[key], path, values)
            if r.random() < 0.3:
                del inner[last]
            else:
                inner[last] = r.choice(JUNK)
            (tmp_path / name).write_text(json.dumps(values))
            try:
                tokenizer = plm.load_tokenizer(tmp_path)
                batch = tokenizer(["Hello 東京 <unk>[MASK]", ""], ["x y", "é"], max_length=20)
                (
                    batch.offsets,
                    tokenizer.decode(batch.input_ids, skip_special_tokens=False),
                    tokenizer.special_ids,
                )
                outcomes.add("works")
            except (plm.FormatError, plm.ArgumentError, TokenizerError):
                outcomes.add("refused")
            (tmp_path / name).write_text(whole[name])
    assert outcomes == {"works", "refused"}


def test_padding_and_truncation_of_a_file_do_not_matter(tmp_path):
    padding = dict(
        strategy={"Fixed": 10**12},
        direction="Right",
        pad_to_multiple_of=None,
        pad_id=0,
        pad_type_id=0,
        pad_token="x",
    )
    truncation = dict(direction="Right", max_length=0, strategy="LongestFirst", stride=5)
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({**BASE, "padding": padding, "truncation": truncation})
    )
    assert plm.load_tokenizer(tmp_path)("a ab x").input_ids.tolist() == [1, 1, 2, 0]


@pytest.mark.parametrize(
    "vocabulary, merges, message",
    [
        ("{", "a b", "vocab.json' cannot be read: not valid JSON"),
        ("[]", "a b", "must hold one object"),
        ('{"a": "x"}', "a b", "the id of 'a' is 'x'"),
        ('{"a": 5000000000}', "a b", "the id of 'a' is 5000000000"),
        ('{"a": 0, "b": 1}', "a b", "lacks a token of the merge 'a b'"),
        ('{"a": 0, "b": 1, "ab": 2}', "a b c", "must be two tokens, got 'a b c'"),
    ],
)
def test_hostile_vocab_json(tmp_path, vocabulary, merges, message):
    (tmp_path / "vocab.json").write_text(vocabulary)
    (tmp_path / "merges.txt").write_text(merges)
    with pytest.raises(plm.FormatError, match=message):
        plm.load_tokenizer(tmp_path, family="gpt2")


def test_settings_that_are_no_json(folder):
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(plm.FormatError, match="tokenizer_config.json' cannot be read"):
        plm.load_tokenizer(folder)
    (folder / "vocab.txt").write_bytes(b"\xff\n")
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(plm.FormatError, match="vocab.txt' cannot be read"):
        plm.load_tokenizer(folder)
