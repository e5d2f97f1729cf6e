"""What a tokenizer.json may ask for.

The library would take the memory, and end the process where there is none.
"""

import base64
import json
import subprocess
import sys

import plmcore as plm
import pytest
from plmcore.tokenizers import limits

PLAIN = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"},
}


def charsmap(size, rest):
    return base64.b64encode(size.to_bytes(4, "little") + rest).decode()


def nested(depth):
    step = {"type": "Lowercase"}
    for _ in range(depth):
        step = {"type": "Sequence", "normalizers": [step]}
    return step


DOUBLE = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
SLOW = {
    "a table of 8.6 GB": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap(2**32 - 4, b"\0" * 100)}},
        "states a table of 4294967292 bytes and has 100",
    ),
    "no table": ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AA=="}}, "states a table"),
    "no bytes": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": 5}},
        "must be bytes in base64",
    ),
    "33 times doubled": (
        {"normalizer": {"type": "Sequence", "normalizers": [DOUBLE] * 33}},
        "8.59e\\+09 times as long",
    ),
    "doubled in turn": (
        {
            "normalizer": {
                "type": "Sequence",
                "normalizers": [{"type": "Sequence", "normalizers": [DOUBLE] * 3}] * 11,
            }
        },
        "times as long",
    ),
    "doubled when decoded": (
        {"decoder": {"type": "Sequence", "decoders": [DOUBLE] * 33}},
        "decoder: .* times as long",
    ),
    "an empty pattern": (
        {"normalizer": {"type": "Replace", "pattern": {"Regex": ""}, "content": "a" * 1000}},
        "1e\\+03 times as long",
    ),
    "much before": (
        {
            "normalizer": {
                "type": "Sequence",
                "normalizers": [{"type": "Prepend", "prepend": "a" * 1000}] * 200,
            }
        },
        "puts 200000 characters before",
    ),
    "many steps": (
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}] * 1000}},
        "1000 steps",
    ),
    "deep": ({"normalizer": nested(100)}, "nested more than 32 deep"),
    "long words": (
        {
            "model": {
                "type": "WordPiece",
                "vocab": {"a": 0, "[UNK]": 1},
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 2**40,
            }
        },
        "max_input_chars_per_word must be at most",
    ),
}


@pytest.mark.parametrize(("change", "message"), SLOW.values(), ids=SLOW)
def test_what_would_end_the_process_is_refused(tmp_path, change, message):
    (tmp_path / "tokenizer.json").write_text(json.dumps(PLAIN | change))
    code = (
        f"import plmcore as plm\ntry: plm.load_tokenizer({str(tmp_path)!r})('a' * 30)\nexcept "
        f"plm.FormatError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-500:]
    with pytest.raises(plm.FormatError, match=message):
        limits.check(json.dumps(PLAIN | change).encode(), "tokenizer.json")
    assert "cannot be read" in done.stdout


def test_a_key_that_is_there_twice():
    text = json.dumps(PLAIN)[:-1] + ', "normalizer": {"type": "Lowercase"}}'
    with pytest.raises(plm.FormatError, match="a key is there twice"):
        limits.check(text.encode(), "tokenizer.json")


def test_real_steps_pass():
    steps = [
        {"type": "Precompiled", "precompiled_charsmap": charsmap(8, b"\0" * 12)},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        {"type": "Prepend", "prepend": "▁"},
    ]
    limits.check(json.dumps(PLAIN | {"normalizer": {"type": "Sequence", "normalizers": steps}}).encode(), "t")


def test_a_post_processor_of_a_thousand_tokens(tmp_path):
    special = {"id": "a", "ids": [0] * 1000, "tokens": ["a"] * 1000}
    processor = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"a": special},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(PLAIN | {"post_processor": processor}))
    with pytest.raises(plm.FormatError, match="the post-processor has 1001 parts, at most 256"):
        plm.load_tokenizer(tmp_path)
