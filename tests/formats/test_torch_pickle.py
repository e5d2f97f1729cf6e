"""What a pickle may cost: a few bytes that use a kept list again must not make megabytes."""

import time

import plmcore as plm
import pytest
from plmcore.formats import torch_pickle

START = b"\x80\x02"


def test_a_kept_list_is_not_copied_again_and_again():
    """OrderedDict(pairs) with kept pairs: 5 bytes for a dict of 20,000 members."""
    pairs = (
        b"](" + b"".join(b"X\x05\x00\x00\x00" + f"{i:05}".encode() + b"N\x86" for i in range(20_000)) + b"e"
    )
    again = b"h\x01h\x00\x85R" * 2000
    data = START + pairs + b"q\x00ccollections\nOrderedDict\nq\x01(" + again + b"t."
    start = time.monotonic()
    with pytest.raises(plm.FormatError, match="it makes more of its lists than the file has bytes"):
        torch_pickle.load(data)
    assert time.monotonic() - start < 10


def test_a_kept_tuple_is_no_size():
    """_rebuild_tensor_v2 with a size of 100,000 axes, again and again."""
    many = b"(" + b"K\x01" * 100_000 + b"tq\x00"
    storage = (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQq\x01"
    )
    call = b"ctorch._utils\n_rebuild_tensor_v2\nq\x02"
    data = START + many + storage + call + b"h\x02(h\x01K\x00h\x00h\x00\x89tR."
    with pytest.raises(plm.FormatError):
        torch_pickle.load(data)
    arguments = START + many + call + b"h\x02h\x00R."
    with pytest.raises(plm.FormatError, match="with 100000 arguments"):
        torch_pickle.load(arguments)


def test_steps_are_counted(monkeypatch):
    monkeypatch.setattr(torch_pickle, "MAX_STEPS", 1000)
    with pytest.raises(plm.FormatError, match="it has more than 1000 steps"):
        torch_pickle.load(START + b"]" * 5000 + b".")


def test_keys_of_equal_hash():
    """Integers of any size can be chosen so that a dict of them takes quadratic time."""
    key = (5 * (2**61 - 1) * 2**40).to_bytes(16, "little")
    with pytest.raises(plm.FormatError, match="an integer of 64 bits"):
        torch_pickle.load(START + b"}\x8a\x10" + key + b"Ns.")
