"""plmcore convert against torch.save and torch.load."""

import pytest
from plmcore.cli import convert

torch = pytest.importorskip("torch")
load_file = pytest.importorskip("safetensors.torch").load_file
pytestmark = pytest.mark.oracle

FORMATS = {
    "zip": {},
    "legacy": {"_use_new_zipfile_serialization": False},
    "protocol 4": {"pickle_protocol": 4},
    "protocol 5": {"pickle_protocol": 5},
}


def converted(tmp_path, state, options):
    torch.save(state, tmp_path / "pytorch_model.bin", **options)
    convert.convert(tmp_path, tmp_path)
    return load_file(tmp_path / "model.safetensors")


def same(a, b):
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and torch.equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("options", FORMATS.values(), ids=FORMATS)
def test_dtypes_and_views(tmp_path, options):
    torch.manual_seed(0)
    base = torch.randn(4, 6)
    state = {
        "base": base,
        "transposed": base.t(),
        "strided": base[1:3, ::2],
        "same": base,
        "row": base[2],
        "repeated": base[:, :1].expand(4, 3),
        "permuted": torch.randn(2, 3, 4).permute(2, 0, 1),
        "parameter": torch.nn.Parameter(torch.randn(2, 3)),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(3.5, dtype=torch.float64),
        "half": base.half(),
        "bfloat16": base.bfloat16(),
        "int64": torch.arange(5),
        "int32": torch.arange(5, dtype=torch.int32),
        "int8": torch.arange(-2, 3, dtype=torch.int8),
        "uint8": torch.arange(5, dtype=torch.uint8),
        "bool": base > 0,
    }
    assert same(converted(tmp_path, state, options), state)


@pytest.mark.parametrize("options", FORMATS.values(), ids=FORMATS)
def test_state_dict_of_a_module(tmp_path, options):
    """With the versions of its modules, buffers and a tied weight."""
    module = torch.nn.Sequential(
        torch.nn.Embedding(7, 4),
        torch.nn.BatchNorm1d(4),
        torch.nn.LSTM(4, 3),
        torch.nn.Linear(4, 7, bias=False),
    )
    module[3].weight = module[0].weight
    assert same(converted(tmp_path, module.state_dict(), options), module.state_dict())


@pytest.mark.parametrize(
    "value",
    [
        torch.nn.Linear(2, 2),
        {"x": torch.zeros(2, dtype=torch.int16)},
        {"x": torch.zeros(2, dtype=torch.complex64)},
        {"lr": 0.1},
        [torch.zeros(2)],
    ],
)
def test_what_is_no_state_dict(tmp_path, value):
    with pytest.raises(ValueError, match=r"it uses the global 'torch|must hold a"):
        converted(tmp_path, value, {})
