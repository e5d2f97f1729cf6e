"""Transfer: a pre-trained model, labelled examples, a model for the task."""

from plmcore.tasks.finetuning import finetune

__all__ = ["finetune"]
