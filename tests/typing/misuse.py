"""Mistakes of a user's script.

Both type checkers must report each line that says `# wrong`, and no other: .ci/check_types.py. It is never
run.
"""

import plmcore as plm
from plmcore import nn, ops, optim

lm = plm.load("dir")
t = plm.Tensor([1.0])

plm.laod("dir")  # wrong
plm.load(3)  # wrong
plm.load("dir", strict="yes")  # wrong
lm.encode(5)  # wrong
lm.encode("a text").append(1)  # wrong
lm.classify("a text")[0:1]["label"]  # wrong
lm.generate("a text").numpy()  # wrong
lm.generate(["a", "b"]).upper()  # wrong
lm.perplexity("a text").perplexty  # wrong
lm(input_ids=[[1]]).logit  # wrong
lm.tokenizer(["a"])  # wrong
plm.pretrain("gpt2", text=["a.txt"])  # wrong
plm.finetune("dir", "classification", out=3)  # wrong
plm.evaluate(3, "a.txt")  # wrong
plm.evaluate.perplexty(lm, "a text")  # wrong
plm.evaluate.glue("scores")  # wrong
t + "a"  # wrong
t @ None  # wrong
t[0] = 1.0  # wrong
t["a"]  # wrong
t.shpae  # wrong
ops.linear(t)  # wrong
ops.add(t, "a")  # wrong
ops.layer_norm(t, t, t, eps="small")  # wrong
ops.attention(t, t, t).logits  # wrong
ops.topk(t, 1).shape  # wrong
optim.AdamW([t], lr="fast")  # wrong
optim.Adamw([t], lr=1.0)  # wrong
nn.Linear("wide", 3)  # wrong
plm.models.brt  # wrong
plm.objectives.MaskedML  # wrong
plm.train_tokenizer("a.txt", vocab_size="many")  # wrong
plm.load_tokenizer("dir")(3)  # wrong
