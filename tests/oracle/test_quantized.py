"""What transformers makes of quantised directories."""

import numpy as np
import plmcore as plm
import pytest
from small_models import GPT2, sharp

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.oracle
IDS = np.array([[5, 9, 2, 14, 3]])


@pytest.mark.parametrize("weights", ["int8", "bfloat16"])
def test_refused_as_they_are_and_opened_as_ordinary_ones(weights, tmp_path):
    sharp(GPT2, "causal-lm").save(tmp_path / "model")
    plm.quantize(tmp_path / "model", weights, out=tmp_path / "small")
    with pytest.raises(ValueError, match="quant_method"):  # and not a model with fresh weights
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "small")
    rounded = plm.load(tmp_path / "small", dtype="float32")
    rounded.save(tmp_path / "rounded")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "rounded").eval()
    with torch.no_grad():
        theirs = model(torch.tensor(IDS)).logits.numpy()
    np.testing.assert_allclose(rounded(input_ids=IDS).logits.numpy(), theirs, rtol=1e-4, atol=1e-4)
