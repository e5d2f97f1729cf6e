"""torch and transformers as oracle: twenty steps of the loop beside a plain loop of theirs, and runs that
transformers opens.
"""

import numpy as np
import plmcore as plm
import pytest
from plmcore import optim, train
from plmcore.cli import demo
from plmcore.train import schedules

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.oracle
torch.set_num_threads(1)  # the models are tiny
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

VOCAB, LENGTH, STEPS = 60, 24, 20
MODELS = {
    "BertForMaskedLM": dict(
        vocab_size=VOCAB,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    ),
    "GPT2LMHeadModel": dict(
        vocab_size=VOCAB,
        n_positions=LENGTH,
        n_embd=48,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    ),
    "T5ForConditionalGeneration": dict(
        vocab_size=VOCAB,
        d_model=48,
        d_kv=12,
        d_ff=96,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        pad_token_id=0,
    ),
}


class Texts:
    """Rows of different lengths; some labels are not asked for."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, step):
        rng = np.random.default_rng(step)
        # Something to learn: counting.
        ids = 3 + (rng.integers(0, VOCAB, (self.rows, 1)) + np.arange(LENGTH)) % (VOCAB - 3)
        mask = (np.arange(LENGTH) < rng.integers(5, LENGTH + 1, (self.rows, 1))).astype(np.int64)
        labels = np.where((mask == 1) & (rng.random(ids.shape) < 0.6), ids, -100)
        return {"input_ids": ids * mask, "attention_mask": mask, "labels": labels}


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_twenty_steps_of_adamw(name, parts, tmp_path):
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    theirs = kind(kind.config_class(**MODELS[name])).train()
    theirs.save_pretrained(tmp_path)
    ours = plm.load(tmp_path).train().model
    rate = schedules.linear(steps=STEPS, warmup=4)

    whole = Texts(12)
    cut = [
        [{k: a[i : i + 12 // parts] for k, a in whole[s].items()} for i in range(0, 12, 12 // parts)]
        for s in range(STEPS)
    ]
    groups = train.parameter_groups(ours, lr=3e-3, weight_decay=0.1)
    trainer = train.Trainer(
        ours, cut, optim.AdamW(groups, lr=3e-3), steps=STEPS, schedule=rate, clip_norm=1.0
    )

    decayed = [p for p in theirs.parameters() if p.ndim >= 2]
    others = [p for p in theirs.parameters() if p.ndim < 2]
    opt = torch.optim.AdamW(
        [dict(params=decayed, weight_decay=0.1), dict(params=others, weight_decay=0.0)], lr=3e-3
    )
    first = last = None
    for step in range(STEPS):
        for group in opt.param_groups:
            group["lr"] = 3e-3 * rate(step)
        opt.zero_grad()
        loss = theirs(**{k: torch.from_numpy(a) for k, a in whole[step].items()}).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0).item()
        opt.step()
        metrics = trainer.advance()
        assert metrics["loss"] == pytest.approx(loss.item(), abs=1e-4), f"step {step}"
        assert metrics["norm"] == pytest.approx(norm, rel=2e-3), f"step {step}"
        first, last = first or loss.item(), loss.item()
    assert last < first - 0.05


CLASSES = {
    "openai-gpt": "OpenAIGPTLMHeadModel",
    "gpt2": "GPT2LMHeadModel",
    "bert": "BertForPreTraining",
    "roberta": "RobertaForMaskedLM",
    "albert": "AlbertForPreTraining",
    "xlnet": "XLNetLMHeadModel",
    "bart": "BartForConditionalGeneration",
    "t5": "T5ForConditionalGeneration",
}


@pytest.mark.parametrize("family", CLASSES)
def test_transformers_opens_the_result_of_a_run(family, tmp_path):
    text = tmp_path / "manual.txt"
    text.write_text(demo.manual()[:80_000])
    plm.pretrain(
        family,
        text=[text],
        out=tmp_path / "run",
        steps=2,
        quiet=True,
        changes=["data.vocab=500", "data.length=32", "data.held_out=0"],
    )
    folder = tmp_path / "run" / "final"
    theirs, found = getattr(transformers, CLASSES[family]).from_pretrained(folder, output_loading_info=True)
    assert not found["missing_keys"] and not found["unexpected_keys"] and not found["mismatched_keys"]
    ours = plm.load(folder)
    ids = transformers.AutoTokenizer.from_pretrained(folder)("The import statement", return_tensors="np")[
        "input_ids"
    ]
    assert ids[0].tolist() == ours.tokenizer("The import statement").input_ids.tolist()
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if family in ("bart", "t5") else {})}
    with torch.no_grad():
        expected = theirs.eval()(**{k: torch.from_numpy(np.asarray(a)) for k, a in inputs.items()})
    field = "prediction_logits" if family in ("bert", "albert") else "logits"
    np.testing.assert_allclose(ours(**inputs)[field].numpy(), expected[field].numpy(), atol=1e-4)
