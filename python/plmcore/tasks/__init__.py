"""Transfer: a pre-trained model, labelled examples, a model for the task."""

from plmcore.tasks import features, lora
from plmcore.tasks.finetuning import finetune
from plmcore.tasks.probing import probe

__all__ = ["features", "finetune", "lora", "probe"]
