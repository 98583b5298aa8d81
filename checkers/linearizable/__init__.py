"""Linearizability of independent objects."""

from checkers.linearizable.checker import Linearizable, TooLargeToCertify, require_certifiable
from checkers.linearizable.models import MODELS, Call, FailedCas, Map, Model, Truth, cas_register

__all__ = [
    "MODELS",
    "Call",
    "FailedCas",
    "Linearizable",
    "Map",
    "Model",
    "TooLargeToCertify",
    "Truth",
    "cas_register",
    "require_certifiable",
]
