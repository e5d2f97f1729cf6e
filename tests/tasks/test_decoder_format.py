import plmcore as plm
from plmcore.tasks import decoder_format


def test_a_decoder_gets_special_tokens(directory, tmp_path):
    lm = plm.load(directory("gpt2"))
    before = lm.model.state_dict()["body.embeddings.tokens.weight"].numpy().copy()
    decoder_format.give_format(lm.tokenizer)
    grown = decoder_format.grown(lm.model, lm.tokenizer)
    table = grown.state_dict()["body.embeddings.tokens.weight"].numpy()
    assert table.shape == (len(before) + 4, 32) and (table[: len(before)] == before).all()
    lm.model = grown
    lm.save(tmp_path / "saved")
    again = plm.load(tmp_path / "saved")
    start, between, end = (again.tokenizer.id_of(t) for t in ("_start_", "_delimiter_", "_classify_"))
    ids = again.tokenizer("the cat", "the dog").input_ids.tolist()
    assert ids[0] == start and ids[-1] == end and ids.count(between) == 1
    assert again.config.pad_token_id == again.tokenizer.pad_token_id is not None
