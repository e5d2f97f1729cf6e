import plmcore as plm
import pytest
from plmcore import models, optim, train
from plmcore.evaluate.prompting import drawn, few_shot
from plmcore.language_model import LanguageModel
from small_models import GPT2, SEQ2SEQ, TEXT, sharp

SUMS = [{"question": f"{a} + {b}", "answer": str(a + b)} for a in range(4) for b in range(4)]
TEMPLATE = "{question} ="


@pytest.fixture(scope="module")
def lm():
    """A GPT-2 that has learnt the sums by heart, as lines of text."""
    tokenizer = plm.tokenizers.train_tokenizer(
        texts=["0 1 2 3 4 5 6 + = \n"] * 20, kind="characters", vocab_size=40
    )
    lines = [f"{r['question']} = {r['answer']}\n\n" for r in SUMS]
    text = tokenizer.encode_ids(["".join(lines)])[0]
    plm.seed(0)
    config = dict(
        model_type="gpt2",
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=48,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    model = models.build(models.config_from_dict(config, vocab_size=tokenizer.vocab_size), "causal-lm")
    per_line = len(text) // len(lines)

    class Lines:
        def __getitem__(self, step):
            import numpy as np

            rng = np.random.default_rng(step)
            rows = np.stack(
                [
                    np.concatenate([text.reshape(-1, per_line)[j] for j in rng.permutation(len(lines))[:4]])
                    for _ in range(16)
                ]
            )
            return {"input_ids": rows, "labels": rows}

    train.Trainer(model, Lines(), optim.AdamW(model.parameters(), lr=5e-3), steps=500, clip_norm=1.0).run()
    return LanguageModel(model.eval(), tokenizer)


def test_answers_are_written(lm):
    found = few_shot(lm, SUMS, SUMS, 2, template=TEMPLATE, max_new_tokens=4)
    assert found.scores["exact_match"] > 0.9 and found.shots == [2] * len(SUMS)
    assert found.predictions[5] == "2" and found.prompts[5].endswith("\n\n1 + 1 =")
    assert found.prompts[0].count("=") == 3
    beams = few_shot(lm, SUMS[:5], SUMS, 2, template=TEMPLATE, max_new_tokens=4, num_beams=3)
    assert beams.prompts == found.prompts[:5] and beams.scores["exact_match"] >= 0.8


def test_choices_are_scored(lm):
    records = [
        {
            "question": r["question"],
            "choices": [str((int(r["answer"]) + 1 - n) % 7) for n in range(2)],
            "label": 1,
        }
        for r in SUMS
    ]
    found = few_shot(lm, records, records, 2, template=TEMPLATE)
    assert found.scores["accuracy"] > 0.9 and set(found.predictions) <= {0, 1}


def test_examples_that_leave_no_room_are_left_out(lm):
    found = few_shot(lm, SUMS[:2], SUMS, 9, template=TEMPLATE, max_new_tokens=4)
    assert found.shots == [3, 3] and len(lm.tokenizer(found.prompts[0]).input_ids) <= 44
    with pytest.raises(ValueError, match="does not fit into 44 tokens, even without solved examples"):
        few_shot(lm, [{"question": "1 + " * 20, "answer": "1"}], template=TEMPLATE, max_new_tokens=4)


def test_zero_shots_and_an_instruction(lm):
    found = few_shot(lm, SUMS[:1], template=TEMPLATE, instruction="1 + 1 = 2", max_new_tokens=2)
    assert found.prompts == ["1 + 1 = 2\n\n0 + 0 ="] and found.shots == [0]


def test_what_is_drawn_depends_on_seed_and_record():
    assert drawn(10, 3, 0, 0) == drawn(10, 3, 0, 0) != drawn(10, 3, 0, 1) and drawn(10, 3, 1, 0) != drawn(
        10, 3, 0, 0
    )
    assert sorted(drawn(10, 10, 0, 4)) == list(range(10))


def test_a_model_with_an_encoder():
    tokenizer = plm.tokenizers.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=290, family="bart")
    lm = sharp(dict(SEQ2SEQ["bart"], decoder_start_token_id=2), "seq2seq-lm", tokenizer)
    found = few_shot(lm, [{"question": "the cat", "answer": "sat"}], max_new_tokens=3)
    assert len(found.predictions) == 1 and 0 <= found.scores["f1"] <= 1


@pytest.mark.parametrize(
    ("records", "shots", "k", "message"),
    [
        ([], [], 0, "there are no records"),
        (SUMS[:1], SUMS[:2], 3, "k must be from 0 to the number of shots, 2, got 3"),
        ([{"text": "a", "answer": "b"}], [], 0, "record 0 has no 'question', only text, answer"),
        ([{"question": "a"}], [], 0, "record 0 has neither choices nor an answer"),
        (SUMS[:1], [{"question": "a", "choices": ["b", "c"], "label": 0}], 1, "shot 0 must have an answer"),
        (
            [{"question": "a", "choices": ["b", "c"], "label": 2}],
            [],
            0,
            "label of record 0 must be from 0 to 1, got 2",
        ),
    ],
)
def test_bad_input(records, shots, k, message):
    tokenizer = plm.tokenizers.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=290)
    with pytest.raises(ValueError, match=message):
        few_shot(sharp(GPT2, "causal-lm", tokenizer), records, shots, k)
