"""Modules: a network is a tree of them, and a model's file reads like its paper."""

from plmcore.nn import init
from plmcore.nn.activations import GELU, Activation, ReLU, Sigmoid, SiLU, Tanh
from plmcore.nn.adaptive import AdaptiveEmbedding, AdaptiveLoss, AdaptiveSoftmax, Clusters
from plmcore.nn.attention import CrossAttention, SelfAttention
from plmcore.nn.containers import ModuleDict, ModuleList, Sequential
from plmcore.nn.conv import Conv1d
from plmcore.nn.dropout import Dropout, LockedDropout
from plmcore.nn.embedding import Embedding
from plmcore.nn.linear import Linear
from plmcore.nn.mlp import MLP
from plmcore.nn.modes import inference
from plmcore.nn.module import Module
from plmcore.nn.norms import BatchNorm, LayerNorm, RMSNorm
from plmcore.nn.parameter import Buffer, Parameter, QuantizedWeight
from plmcore.nn.quantized import QuantizedEmbedding, QuantizedLinear
from plmcore.nn.recurrent import GRU, LSTM, RNN, DropConnect, RecurrentState
from plmcore.nn.sampled import SampledSoftmax
from plmcore.nn.scalar_mix import ScalarMix
from plmcore.nn.state import State

__all__ = [
    "GELU",
    "GRU",
    "LSTM",
    "MLP",
    "RNN",
    "Activation",
    "AdaptiveEmbedding",
    "AdaptiveLoss",
    "AdaptiveSoftmax",
    "BatchNorm",
    "Buffer",
    "Clusters",
    "Conv1d",
    "CrossAttention",
    "DropConnect",
    "Dropout",
    "Embedding",
    "LayerNorm",
    "Linear",
    "LockedDropout",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "QuantizedEmbedding",
    "QuantizedLinear",
    "QuantizedWeight",
    "RMSNorm",
    "ReLU",
    "RecurrentState",
    "SampledSoftmax",
    "ScalarMix",
    "SelfAttention",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "State",
    "Tanh",
    "inference",
    "init",
]
