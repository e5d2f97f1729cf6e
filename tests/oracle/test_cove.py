"""CoVe against torch.nn.LSTM over packed sequences."""

import numpy as np
import plmcore as plm
import pytest
from plmcore.cli.convert import convert_checkpoint

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("prefix", ["", "rnn.", "module.rnn."])
def test_the_published_file(tmp_path, prefix):
    """At its size, 300 and 300 twice, with its names."""
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(300, 300, 2, bidirectional=True, batch_first=True)
    torch.save({prefix + k: t for k, t in lstm.state_dict().items()}, tmp_path / "wmtlstm.pth")
    convert_checkpoint(tmp_path / "wmtlstm.pth", tmp_path / "cove", "cove")
    lm = plm.load(tmp_path / "cove")
    assert lm.config.width == 600
    lengths = [5, 9, 1, 9]
    x = torch.randn(4, 9, 300)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    wanted, _ = torch.nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
    mask = (np.arange(9) < np.array(lengths)[:, None]).astype(np.int64)
    found = lm(x.numpy(), attention_mask=mask).last_hidden_state.numpy()
    assert np.abs(found - wanted.detach().numpy()).max() < 1e-6


def test_a_file_that_is_no_lstm(tmp_path):
    torch.save({"weight": torch.zeros(3)}, tmp_path / "a.pth")
    with pytest.raises(plm.FormatError, match="it has no weight_ih_l0"):
        convert_checkpoint(tmp_path / "a.pth", tmp_path / "cove", "cove")
    torch.save(torch.nn.LSTM(4, 4).state_dict(), tmp_path / "b.pth")
    with pytest.raises(plm.FormatError, match="reads in both directions"):
        convert_checkpoint(tmp_path / "b.pth", tmp_path / "cove", "cove")
