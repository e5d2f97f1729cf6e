import numpy as np
import pytest
from plmcore.tokenizers import families, format
from plmcore.tokenizers.families import FAMILIES

# pad 0, unk 1, cls 2, sep 3, mask 4, bos 5, eos 6, language 7.
IDS = {role: i for i, role in enumerate([*families.ROLES, "language"])}


@pytest.mark.parametrize(
    "name, single, pair, types",
    [
        ("bert", [2, 50, 3], [2, 50, 3, 60, 61, 3], [0, 0, 0, 1, 1, 1]),
        ("albert", [2, 50, 3], [2, 50, 3, 60, 61, 3], [0, 0, 0, 1, 1, 1]),
        ("roberta", [2, 50, 3], [2, 50, 3, 3, 60, 61, 3], [0] * 7),
        ("xlm-roberta", [2, 50, 3], [2, 50, 3, 3, 60, 61, 3], [0] * 7),
        ("mbart", [50, 6, 7], [50, 60, 61, 6, 7], [0] * 5),
        ("mbart50", [7, 50, 6], [7, 50, 60, 61, 6], [0] * 5),
        ("gpt2", [50], [50, 60, 61], [0] * 3),
        ("openai-gpt", [50], [50, 60, 61], [0] * 3),
        ("xlnet", [50, 3, 2], [50, 3, 60, 61, 3, 2], [0, 0, 1, 1, 1, 2]),
        ("t5", [50, 6], [50, 6, 60, 61, 6], [0] * 5),
        ("marian", [50, 6], [50, 60, 61, 6], [0] * 4),
        ("transformer", [50, 6], [50, 6, 60, 61, 6], [0] * 5),
    ],
)
def test_formats(name, single, pair, types):
    made = format.of_family(FAMILIES[name], IDS.__getitem__)
    assert made.build(np.array([50]))[0].tolist() == single and made.added(False) == len(single) - 1
    ids, found = made.build([50], [60, 61])
    assert ids.tolist() == pair and found.tolist() == types and made.added(True) == len(pair) - 3
    assert made.build(np.zeros(0, np.int32))[0].dtype == np.int64
    # What tokenizer.json would say.
    again = format.of_processor(format.processor_of(made, lambda i: f"<{i}>"))
    assert again == made


def test_processors_of_the_library():
    from tokenizers import processors

    roberta = format.of_processor(processors.RobertaProcessing(("</s>", 3), ("<s>", 2)))
    assert roberta == format.of_family(FAMILIES["roberta"], IDS.__getitem__)
    bert = processors.Sequence(
        [processors.ByteLevel(), processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))]
    )
    assert format.of_processor(bert) == format.of_family(FAMILIES["bert"], IDS.__getitem__)
    assert format.of_processor(processors.ByteLevel()) is format.BARE is format.of_processor(None)


def test_families_are_found():
    assert (
        families.of_class("BertTokenizerFast").name == "bert"
        and families.of_class("MBart50Tokenizer").name == "mbart50"
    )
    assert families.of_class("PreTrainedTokenizerFast") is None and families.of_class("") is None
    assert (
        families.of_vocabulary(["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"], "unigram").name
        == "xlnet"
    )
    assert families.of_vocabulary(["a"], "byte-bpe").name == ""
    assert FAMILIES["bert"].needed == {"cls", "sep", "unk"} and FAMILIES["gpt2"].needed == {"unk"}
