"""What transformers 4.35.2 computes, the last release whose Transformer-XL runs, in a process of its own:

    python transfo_xl_reference.py PACKAGES make|open FOLDER...

PACKAGES has that release. `make` reads FOLDER/job.json (class, config) and inputs.npz, and writes the model
to FOLDER/published and what it computes to outputs.npz and stepped.npz. `open` opens FOLDER/saved, and writes
what it computes to opened.npz and the names that it missed or did not expect to opened.json.
"""

import json
import pathlib
import sys
import warnings

sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

assert transformers.__version__ == "4.35.2", transformers.__version__
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)


def widened(model):
    """Weights of a size at which a wrong formula shows; norms that are not 1."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            r = torch.randn_like(p)
            if p.ndim > 1:
                p.copy_(0.5 * r if "emb_layers" in name else r / p.shape[-1] ** 0.5)
            else:
                p.copy_(1 + 0.3 * r if name.endswith("norm.weight") else 0.3 * r)
    return model


def made(folder):
    job = json.loads((folder / "job.json").read_text())
    torch.manual_seed(job.get("seed", 0))
    kind = getattr(transformers, job["class"])
    model = widened(kind(kind.config_class(**job["config"]))).eval()
    model.save_pretrained(folder / "published")
    inputs = {k: torch.tensor(v) for k, v in np.load(folder / "inputs.npz").items()}
    np.savez(folder / "outputs.npz", **computed(model, inputs, job))
    np.savez(folder / "stepped.npz", **stepped(model.double(), inputs))


def computed(model, inputs, job):
    """Fields, .0 and .1 of layers; `segments` are texts that go on from one another."""
    found, count = {}, sum(p.numel() for p in model.parameters())
    found["count"] = np.array(count)
    with torch.no_grad():
        if "segments" in inputs:
            mems = None
            for k, ids in enumerate(inputs["segments"]):
                out = model(ids, mems=mems)
                mems = out.mems
                put(found, f"segment{k}", out)
            empty = [torch.zeros(0, ids.shape[0], model.config.d_model) for _ in range(model.config.n_layer)]
            put(found, "empty", model(inputs["segments"][0], mems=empty))
        plain = {k: v for k, v in inputs.items() if k in ("input_ids", "mems")}
        put(found, "plain", model(**plain, output_hidden_states=True, output_attentions=True))
        if "labels" in inputs:
            put(found, "labelled", model(**plain, labels=inputs["labels"].clone()))
        for name, options in job.get("generate", {}).items():
            found[f"generate.{name}"] = model.generate(inputs["segments"][0], **options).numpy()
    return found


def put(found, prefix, out):
    for name, value in out.items():
        name = {"prediction_scores": "logits"}.get(name, name)
        if name in ("losses", "loss") and prefix != "labelled" or value is None:
            continue
        values = value if isinstance(value, (tuple, list)) else None
        if values is None:
            found[f"{prefix}.{name}"] = value.detach().numpy()
        else:
            found |= {f"{prefix}.{name}.{i}": v.detach().numpy() for i, v in enumerate(values)}


def stepped(model, inputs):
    """Gradients, and the parameters after a step of SGD, in float64: nothing is rounded to float32 inside."""
    if "labels" not in inputs:
        return {}
    torch.Tensor.float = lambda t: t
    frequencies = torch.arange(0, model.config.d_model, 2, dtype=torch.float64) / model.config.d_model
    model.transformer.pos_emb.inv_freq = 10000.0**-frequencies
    plain = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items() if k != "segments"}
    loss = model(**plain).loss
    loss.backward()
    named = dict(model.named_parameters())
    found = {f"grad.{n}": p.grad.numpy().copy() for n, p in named.items() if p.grad is not None}
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    found |= {f"after.{n}": p.detach().numpy() for n, p in named.items()}
    return found | {"loss": loss.detach().numpy()}


def opened(folder):
    job = json.loads((folder / "job.json").read_text())
    kind = getattr(transformers, job["class"])
    model, info = kind.from_pretrained(folder / "saved", output_loading_info=True)
    inputs = {k: torch.tensor(v) for k, v in np.load(folder / "inputs.npz").items()}
    np.savez(folder / "opened.npz", **computed(model.eval(), inputs, job))
    (folder / "opened.json").write_text(json.dumps({k: sorted(v) for k, v in info.items()}))


if __name__ == "__main__":
    for folder in map(pathlib.Path, sys.argv[3:]):
        keep = torch.Tensor.float
        {"make": made, "open": opened}[sys.argv[2]](folder)
        torch.Tensor.float = keep
