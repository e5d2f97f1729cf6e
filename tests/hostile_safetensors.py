"""Safetensors files that break one rule each, with what the error must say.

Also the seeds of tests/fuzz_safetensors.py.
"""

import json
import struct


def pack(header, data: bytes = b"", length: int | None = None) -> bytes:
    """The file of a header (an object, text or bytes); `length` stands in for the header's true length."""
    if not isinstance(header, (str, bytes)):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)) -> dict:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


GOOD = pack(
    {
        "__metadata__": {"k": "v"},
        "a": entry(),
        "b": entry("I8", (2, 2), (8, 12)),
        "c": entry("BOOL", (0, 3), (12, 12)),
    },
    bytes(12),
)
EIGHT = bytes(8)
ONE = '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'


def one(**members) -> dict:
    return {"a": {**entry(), **members}}


HOSTILE: dict[str, tuple[bytes, str]] = {
    # the length
    "empty file": (b"", "only 0 bytes"),
    "seven bytes": (b"\x02\0\0\0\0\0\0", "only 7 bytes"),
    "length only": (struct.pack("<Q", 2), "cut off: the header has 2 bytes, the file 8"),
    "length zero": (pack(""), "must begin with '{'"),
    "length beyond the file": (pack(one(), EIGHT, 5000), "cut off"),
    "length beyond the file by one": (pack("{}", b"", 3), "cut off"),
    "length beyond the limit": (pack("{}", b"", 100_000_001), "at most 100000000 are allowed"),
    "length of all ones": (pack("{}", b"", 2**64 - 1), "at most 100000000 are allowed"),
    "length that wraps around": (pack("{}", b"", 2**64 - 8), "at most 100000000 are allowed"),
    "big-endian length": (struct.pack(">Q", 2) + b"{}", "at most 100000000 are allowed"),
    "length too short": (pack(one(), EIGHT, 20), "not valid JSON"),
    "length into the values": (pack(one(), EIGHT, len(json.dumps(one())) + 4), "zero byte"),
    # JSON
    "not JSON": (pack("hello"), "must begin with '{'"),
    "a list": (pack("[]"), "must begin with '{'"),
    "null": (pack("null"), "must begin with '{'"),
    "space first": (pack(" {}"), "must begin with '{'"),
    "byte order mark": (pack(b"\xef\xbb\xbf{}"), "must begin with '{'"),
    "open object": (pack("{"), "not valid JSON"),
    "open text": (pack('{"a'), "not valid JSON"),
    "two objects": (pack("{}{}"), "not valid JSON"),
    "text after it": (pack("{} x"), "not valid JSON"),
    "zeros after it": (pack(b"{}\0\0"), "zero byte"),
    "comment": (pack("{/* */}"), "not valid JSON"),
    "trailing comma": (pack(ONE + ",}", EIGHT), "not valid JSON"),
    "NaN": (pack('{"a":NaN}'), "not valid JSON"),
    "bad UTF-8 in a name": (pack(b'{"\xff\xfe":1}'), "not valid JSON"),
    "overlong UTF-8": (pack(b'{"\xc0\xaf":1}'), "not valid JSON"),
    "half a surrogate": (pack('{"\\ud800":1}'), "not valid JSON"),
    "control character in a name": (pack(b'{"\n":1}'), "not valid JSON"),
    "deep lists": (pack('{"a":' + "[" * 200_000 + "]" * 200_000 + "}"), "must be an object, got a list"),
    "deep lists in a shape": (pack('{"a":{"shape":' + "[" * 200_000), "list of integers from 0, got a list"),
    "deep objects": (pack('{"a":' * 200_000), "the tensor 'a'"),
    "deep metadata": (pack('{"__metadata__":' + '{"a":' * 200_000), "must be a text, got an object"),
    "number too large to tell": (pack('{"a":{"shape":[1e999]}}'), "not valid JSON"),
    # types
    "tensor is a list": (pack({"a": []}), "the tensor 'a' must be an object, got a list"),
    "tensor is null": (pack({"a": None}), "the tensor 'a' must be an object, got null"),
    "tensor is a text": (pack({"a": "F32"}), "must be an object, got a text"),
    "tensor is a number": (pack({"a": 3}), "must be an object, got a number"),
    "tensor is true": (pack({"a": True}), "must be an object, got a truth value"),
    "dtype is a number": (pack(one(dtype=4), EIGHT), "'dtype' must be a text, got a number"),
    "dtype is a list": (pack(one(dtype=["F32"]), EIGHT), "'dtype' must be a text, got a list"),
    "shape is a number": (
        pack(one(shape=2), EIGHT),
        "'shape' must be a list of integers from 0, got a number",
    ),
    "shape is a text": (pack(one(shape="2"), EIGHT), "'shape' must be a list"),
    "shape is null": (pack(one(shape=None), EIGHT), "'shape' must be a list"),
    "size is a text": (pack(one(shape=["2"]), EIGHT), "'shape' must be a list of integers"),
    "size is a fraction": (pack(one(shape=[2.0]), EIGHT), "not an integer"),
    "size is negative": (pack(one(shape=[-2]), EIGHT), "must not be negative, got -2"),
    "size is true": (pack(one(shape=[True, 2]), EIGHT), "got a truth value"),
    "offsets are a number": (pack(one(data_offsets=8), EIGHT), "'data_offsets' must be a list"),
    "no offset": (pack(one(data_offsets=[]), EIGHT), "must be two numbers, got 0"),
    "one offset": (pack(one(data_offsets=[8]), EIGHT), "must be two numbers, got 1"),
    "three offsets": (pack(one(data_offsets=[0, 8, 8]), EIGHT), "must be two numbers"),
    "offset is negative": (pack(one(data_offsets=[-8, 0]), EIGHT), "must not be negative"),
    "offset is a fraction": (pack(one(data_offsets=[0, 8.5]), EIGHT), "not an integer"),
    "metadata is a list": (pack({"__metadata__": []}), "__metadata__ must be an object, got a list"),
    "metadata is a text": (pack({"__metadata__": "x"}), "__metadata__ must be an object"),
    "metadata with a number": (
        pack({"__metadata__": {"k": 1}}),
        "__metadata__: 'k' must be a text, got a number",
    ),
    "metadata with null": (pack({"__metadata__": {"k": None}}), "'k' must be a text, got null"),
    # members
    "no dtype": (pack({"a": {"shape": [2], "data_offsets": [0, 8]}}, EIGHT), "has no 'dtype'"),
    "no shape": (pack({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, EIGHT), "has no 'shape'"),
    "no offsets": (pack({"a": {"dtype": "F32", "shape": [2]}}, EIGHT), "has no 'data_offsets'"),
    "unknown member": (pack(one(strides=[1]), EIGHT), "'strides' is no part of the format"),
    "dtype twice": (pack('{"a":{"dtype":"F32","dtype":"F32"}}'), "'dtype' is there twice"),
    "shape twice": (pack('{"a":{"shape":[2],"shape":[3]}}'), "'shape' is there twice"),
    "offsets twice": (
        pack('{"a":{"data_offsets":[0,8],"data_offsets":[0,8]}}'),
        "'data_offsets' is there twice",
    ),
    "tensor twice": (pack(ONE + "," + ONE[1:] + "}", EIGHT), "the tensor 'a' is there twice"),
    "tensor twice, spelt otherwise": (pack(ONE + ',"\\u0061":{}}', EIGHT), "the tensor 'a' is there twice"),
    "metadata twice": (pack('{"__metadata__":{},"__metadata__":{}}'), "__metadata__ is there twice"),
    "metadata member twice": (pack('{"__metadata__":{"k":"1","k":"2"}}'), "'k' is there twice"),
    # dtypes
    "unknown dtype": (pack(one(dtype="F31"), EIGHT), "'dtype' is 'F31'; plmcore reads I64"),
    "dtype of another size": (pack(one(dtype="F8_E4M3", shape=[8]), EIGHT), "'F8_E4M3'"),
    "lower-case dtype": (pack(one(dtype="f32"), EIGHT), "'f32'"),
    "dtype with a zero": (pack(one(dtype="F32\0"), EIGHT), "'F32?'"),
    # sizes
    "too few bytes": (pack(one(shape=[3]), EIGHT), "is float32[3] and must have 12 bytes, got 8"),
    "too many bytes": (pack(one(shape=[1]), EIGHT), "must have 4 bytes, got 8"),
    "bytes for an empty tensor": (pack(one(shape=[0]), EIGHT), "must have 0 bytes, got 8"),
    "no bytes": (pack(one(data_offsets=[0, 0])), "must have 8 bytes, got 0"),
    "product wraps to the right size": (pack(one(shape=[2**33, 2**33]), EIGHT), "too large"),
    "product wraps to zero": (pack(one(shape=[2**32, 2**32], data_offsets=[0, 0])), "too large"),
    "huge beside a zero": (pack(one(shape=[2**40, 0, 2**40], data_offsets=[0, 0])), "too large"),
    "size beyond 2^46": (
        pack(one(shape=[2**46 + 1], data_offsets=[0, 2**48 + 4])),
        "the size 70368744177665 is too large",
    ),
    "size beyond int64": (pack(one(shape=[2**63]), EIGHT), "is too large"),
    "size beyond uint64": (pack(one(shape=[2**64 + 2]), EIGHT), "too large"),
    "nine axes": (pack(one(shape=[1] * 8 + [2]), EIGHT), "more than 8 axes"),
    # layout
    "ends before it begins": (pack(one(data_offsets=[8, 0]), EIGHT), "ends at 0, before it begins at 8"),
    "ends outside": (
        pack(one(shape=[4], data_offsets=[0, 16]), EIGHT),
        "ends at byte 16 of the values, which have 8",
    ),
    "begins outside": (pack(one(data_offsets=[2**40, 2**40 + 8]), EIGHT), "of the values, which have 8"),
    "offsets near 2^64": (
        pack(one(data_offsets=[2**64 - 9, 2**64 - 1]), EIGHT),
        "of the values, which have 8",
    ),
    "terabytes": (pack(one(shape=[2**40], data_offsets=[0, 2**42]), EIGHT), "of the values, which have 8"),
    "cut off by one byte": (pack(one(), bytes(7)), "ends at byte 8 of the values, which have 7"),
    "one byte more": (pack(one(), bytes(9)), "nothing tells of the last 1 bytes"),
    "values of no tensor": (pack("{}", EIGHT), "nothing tells of the last 8 bytes"),
    "starts late": (pack(one(data_offsets=[4, 12]), bytes(12)), "the bytes from 0 to 4"),
    "hole": (
        pack({"a": entry(), "b": entry(offsets=(12, 20))}, bytes(20)),
        "the bytes from 8 to 12 of the values, before the tensor 'b'",
    ),
    "overlap": (
        pack({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)),
        "'b' begins at 4, inside 'a', which ends at 8",
    ),
    "same place": (pack({"a": entry(), "b": entry()}, EIGHT), "'b' begins at 0, inside 'a'"),
    "empty tensor inside another": (
        pack({"a": entry(), "b": entry("I8", (0,), (4, 4))}, EIGHT),
        "'b' begins at 4, inside 'a'",
    ),
    "long name in an error": (pack({"n" * 5000: 1}), "n..."),
}
