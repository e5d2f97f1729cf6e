"""What a name that is no setting may have meant: a setting that other programs call so, or one that is
spelled nearly so.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import ParamSpec, TypeVar

from plmcore._core import ArgumentError
from plmcore.runtime.kinds import checked

P = ParamSpec("P")
R = TypeVar("R")

# What other programs call a setting -> its names here, of which a run may not have all; with a value where
# the setting has others than there.
OF_SETTINGS = {
    "optim.lr": "learning_rate lr max_lr peak_lr base_lr init_lr",
    "optim.kind": "optimizer optim optimiser",
    "optim.betas": "adam_betas adam_beta1 adam_beta2 beta1 beta2",
    "optim.eps": "adam_epsilon adam_eps epsilon",
    "optim.weight_decay": "weight_decay wd l2 decay weight_decay_rate",
    "optim.clip_norm": "max_grad_norm clip_norm grad_clip gradient_clip gradient_clipping gradient_clip_val "
    "clip_grad_norm clip",
    "optim.layer_decay": "layerwise_lr_decay layer_lr_decay llrd lr_layer_decay",
    "schedule.kind": "lr_scheduler_type lr_scheduler scheduler lr_schedule",
    "schedule.warmup": "warmup_steps warmup_updates num_warmup_steps warmup_iters warmup",
    "schedule.floor": "min_lr end_learning_rate final_lr min_lr_ratio",
    "data.batch": "batch_size train_batch_size per_device_train_batch_size per_gpu_train_batch_size "
    "max_sentences bs micro_batch_size",
    "data.accumulate": "gradient_accumulation_steps gradient_accumulation accumulate_grad_batches "
    "update_freq accumulation_steps grad_accum",
    "data.length": "max_seq_length max_seq_len max_sequence_length max_length max_len seq_len seq_length "
    "sequence_length block_size tokens_per_sample model_max_length context_length "
    "max_source_length max_source_positions max_tokens",
    "data.held_out": "validation_split validation_split_percentage eval_split test_size",
    "data.tokenizer": "tokenizer_name tokenizer",
    "data.vocab": "vocab_size vocabulary_size vocab",
    "data.train": "train_file train_data training_file train_dataset train",
    "data.dev": "validation_file eval_file dev_file validation_data eval_dataset valid validation",
    "data.test": "test_file test_data test_dataset",
    "data.labels": "num_labels num_classes label_names label_list classes",
    "data.text": "train_text text_file input_file",
    "task.target_length": "max_target_length val_max_target_length max_target_positions",
    "mixture.target_length": "max_target_length max_target_positions",
    "task.stride": "doc_stride",
    "task.question_length": "max_query_length",
    "task.answer_length": "max_answer_length",
    "task.n_best": "n_best_size",
    "task.null_threshold": "null_score_diff_threshold",
    "task.unanswerable": "version_2_with_negative",
    "task.prefix": "source_prefix",
    "task.beams": "num_beams beam",
    "task.metrics": "metric metrics metric_name metric_for_best_model compute_metrics",
    "task.label_smoothing": "label_smoothing label_smoothing_factor",
    "train.label_smoothing": "label_smoothing label_smoothing_factor",
    "train.epochs": "num_train_epochs num_epochs n_epochs max_epoch max_epochs epoch epochs",
    "train.steps": "max_steps total_steps num_steps n_steps max_update total_num_update num_train_steps "
    "max_iters iterations num_iterations num_train_epochs num_epochs n_epochs max_epoch "
    "max_epochs epoch epochs",
    "train.warmup_share": "warmup_ratio warmup_proportion warmup_fraction",
    "train.log_every": "logging_steps log_interval log_steps log_every",
    "train.evaluate_every": "eval_steps eval_interval evaluation_steps validate_interval "
    "validate_interval_updates eval_every",
    "train.save_every": "save_steps save_interval save_interval_updates checkpoint_interval",
    "train.keep": "save_total_limit keep_last_epochs keep_interval_updates",
    "train.patience": "early_stopping_patience early_stopping",
    "train.result=best": "load_best_model_at_end",
    "train.recompute=true": "gradient_checkpointing checkpoint_activations activation_checkpointing",
    "train.activations=bfloat16": "fp16 bf16 amp mixed_precision half half_precision precision",
    "train.average": "ema ema_decay",
    "train.tensorboard=true": "report_to tensorboard_logdir tensorboard",
    "run.seed": "random_seed manual_seed seed",
    "run.model": "model_name_or_path model_name pretrained_model restore_file",
    "run.task": "task_name task",
    "run.family": "model_type arch architecture",
    "adapt.lora_rank": "lora_r r lora lora_dim",
    "adapt.lora_targets": "target_modules lora_target_modules",
    "adapt.freeze": "freeze_encoder freeze_body freeze_layers num_frozen_layers",
    "objective.rate": "mlm_probability masked_lm_prob mask_prob masking_prob mask_rate",
}
FOREIGN: dict[str, list[str]] = {}
for _setting, _names in OF_SETTINGS.items():
    for _name in _names.split():
        FOREIGN.setdefault(_name, []).append(_setting)
# The same of keys of config.json, whose names differ from family to family.
ALIKE = (
    ("hidden_size", "n_embd", "d_model", "dim", "width", "embed_dim", "encoder_embed_dim"),
    ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "layers", "depth"),
    ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "heads"),
    ("intermediate_size", "n_inner", "d_inner", "d_ff", "encoder_ffn_dim", "ffn_dim", "feed_forward_size"),
    ("max_position_embeddings", "n_positions", "n_ctx"),
    (
        "hidden_dropout_prob",
        "resid_pdrop",
        "dropout",
        "dropout_rate",
        "hidden_dropout",
        "dropout_prob",
        "p_dropout",
    ),
    ("attention_probs_dropout_prob", "attn_pdrop", "attention_dropout"),
)
# Settings that functions and commands take under names of their own.
OWN_NAMES = {"adapt.lora_rank": "lora"}


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """The end of a message: which of the known names was meant, or which there are."""
    known = list(known)
    found = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean {found[0]}?" if found else f"; there are {', '.join(known)}"


def setting(name: str, settings: Mapping[str, Mapping[str, object]]) -> str:
    """The same for a setting, "optim.rate" or "learning_rate", among all that a run has."""
    section, _, key = name.lower().replace("-", "_").rpartition(".")
    known = [f"{s}.{k}" for s, table in settings.items() for k in table]
    keys = {k.rpartition(".")[2]: k for k in reversed(known)}
    alike = {other for group in ALIKE if key in group for other in group}
    found = (
        [s for s in FOREIGN.get(key, ()) if s.partition("=")[0] in known]
        or [s for s in known if s.startswith("model.") and s.rpartition(".")[2] in alike]
        or _close(f"{section}.{key}", [s for s in known if s.startswith(f"{section}.")], 0.8)
        or [s for s in known if s.rpartition(".")[2] == key]
        or _close(name, known, 0.7)
        or [keys[k] for k in _close(key, list(keys), 0.7)]
        or [s for k in _close(key, list(FOREIGN), 0.8) for s in FOREIGN[k] if s.partition("=")[0] in known]
        or _close(name, known, 0.5)
    )
    if not found:
        there = [f"{section}.{k}" for k in settings.get(section, ())] or [f"[{table}]" for table in settings]
        return f"; there are {', '.join(there)}"
    return f"; did you mean {' or '.join(found[:2])}?"


def _close(name: str, known: list[str], cutoff: float) -> list[str]:
    return difflib.get_close_matches(name, known, n=1, cutoff=cutoff)


def hinted(function: Callable[P, R]) -> Callable[P, R]:
    """A function of which many arguments are settings: one that it does not have is an ArgumentError that
    says which was meant.
    """
    names = list(inspect.signature(function).parameters)
    inner = checked(function)

    @functools.wraps(function)
    def called(*args: P.args, **given: P.kwargs) -> R:
        for name in given:
            if name not in names:
                raise ArgumentError(f"{function.__name__} has no argument {name}{argument(name, names)}")
        return inner(*args, **given)

    return called


def option(name: str, options: list[str]) -> str:
    """The end of a message for an option of a command, "--learning-rate", that is none of its options."""
    settings = FOREIGN.get(name.lstrip("-").lower().replace("-", "_"), [])
    own = [
        o
        for s in settings
        if (o := "--" + (OWN_NAMES.get(s) or s.partition("=")[0].rpartition(".")[2])) in options
    ]
    if own:
        return f"; did you mean {own[0]}?"
    if settings and "--set" in options:
        return f"; did you mean --set {settings[0]}{'' if '=' in settings[0] else '=...'}?"
    found = _close(name, options, 0.6)
    return f"; did you mean {found[0]}?" if found else ""


def argument(name: str, names: list[str]) -> str:
    """The end of a message for an argument of Python that is none of the names."""
    settings = FOREIGN.get(name.lower(), [])
    own = [n for s in settings if (n := OWN_NAMES.get(s) or s.partition("=")[0].rpartition(".")[2]) in names]
    if own:
        return f"; did you mean {own[0]}?"
    if settings:
        value = "" if "=" in settings[0] else "=..."
        return f'; did you mean changes=["{settings[0]}{value}"]?'
    return nearest(name, names, 0.6)
