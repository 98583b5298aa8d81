"""Linearizability of independent objects."""

from checkers.linearizable.checker import Linearizable
from checkers.linearizable.models import MODELS, Call, FailedCas, Map, Model, Truth, cas_register

__all__ = ["MODELS", "Call", "FailedCas", "Linearizable", "Map", "Model", "Truth", "cas_register"]
