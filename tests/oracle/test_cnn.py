"""Kim's network and the stack of windows against torch.nn.functional: logits, loss and gradients."""

import numpy as np
import plmcore as plm
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
torch.set_num_threads(1)
F = torch.nn.functional


@pytest.mark.parametrize("layers, window", [(0, 1), (1, 1), (2, 2)])
def test_torch(layers, window, tmp_path):
    rng = np.random.default_rng(layers)
    config = dict(
        model_type="cnn", vocab_size=40, d_embed=7, filters=[[1, 3], [3, 5], [6, 4]], num_labels=4,
        layers=layers, window=window, d_hidden=9,
    )  # fmt: skip
    lm = plm.from_config(config, head="sequence-classification").eval()
    lm.save(tmp_path)
    tensors, _ = plm.safetensors.read(tmp_path)
    w = {k: torch.tensor(t.numpy().astype(np.float64), requires_grad=True) for k, t in tensors.items()}
    lengths, T = [10, 2, 7], 10
    ids, labels = rng.integers(1, 40, (3, T)), np.array([3, 0, 1])
    mask = (np.arange(T) < np.array(lengths)[:, None]).astype(np.int64)
    rows = []
    for row, n in zip(ids, lengths):
        x = w["embedding.weight"][torch.tensor(row[:n])].T[None]  # [1, C, n]
        for i in range(layers):
            x = F.relu(F.conv1d(x, w[f"windows.{i}.weight"], w[f"windows.{i}.bias"], padding=window))
        x = F.pad(x, (0, max(0, 6 - n)))
        found = [F.relu(F.conv1d(x, w[f"convs.{i}.weight"], w[f"convs.{i}.bias"])).amax(2) for i in range(3)]
        rows.append(F.linear(torch.cat(found, 1), w["classifier.weight"], w["classifier.bias"]))
    expected = torch.cat(rows)
    loss = F.cross_entropy(expected, torch.tensor(labels))
    out = lm(input_ids=ids, attention_mask=mask, labels=labels)
    np.testing.assert_allclose(out.logits.numpy(), expected.detach(), atol=1e-5)
    out.loss.backward()
    loss.backward()
    for name, p in lm.model.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), w[name].grad, atol=1e-5, err_msg=name)
