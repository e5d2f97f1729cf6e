import fakes
import numpy as np
import pytest
from plmcore.objectives.layout import Format


@pytest.mark.parametrize("family", fakes.FORMATS)
@pytest.mark.parametrize("texts", [1, 2])
def test_rows_are_what_the_tokenizer_builds(family, texts):
    tokenizer = fakes.Numbers(family)
    rng = np.random.default_rng(0)
    lengths = [np.array([3, 1, 7, 5]), np.array([2, 6, 1, 4])][:texts]
    bodies = [rng.integers(tokenizer.first, tokenizer.vocab_size, (4, 7)) for _ in range(texts)]
    layout = Format(tokenizer, texts)(*lengths)
    found = layout.inputs(*bodies)
    for row in range(4):
        ids, types = tokenizer.build(*(body[row, : n[row]] for body, n in zip(bodies, lengths)))
        n, width = len(ids), found["input_ids"].shape[1]
        real = slice(width - n, None) if family == "xlnet" else slice(n)
        assert found["input_ids"][row, real].tolist() == ids.tolist()
        mask = np.zeros(width, int)
        mask[real] = 1
        assert found["attention_mask"][row].tolist() == mask.tolist()
        assert (found["input_ids"][row][mask == 0] == tokenizer.pad_token_id).all()
        if types.any():
            assert found["token_type_ids"][row, real].tolist() == types.tolist()
            assert (found["token_type_ids"][row][mask == 0] == tokenizer.family.pad_type).all()
        else:
            assert "token_type_ids" not in found
    assert layout.lengths.tolist() == found["attention_mask"].sum(1).tolist()


def test_put_leaves_special_tokens_alone():
    layout = Format(fakes.Numbers("xlnet"), 2)(np.array([2, 1]), np.array([1, 1]))
    found = layout.put(np.array([[1, 2], [3, 0]]), np.array([[4], [5]]), fill=-100)
    assert found.tolist() == [[1, 2, -100, 4, -100, -100], [-100, 3, -100, 5, -100, -100]]
