"""Linearizability of independent objects."""

from checkers.linearizable.checker import Linearizable
from checkers.linearizable.models import MODELS, Call, FailedCas, Model, cas_register

__all__ = ["MODELS", "Call", "FailedCas", "Linearizable", "Model", "cas_register"]
