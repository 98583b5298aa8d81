"""Linearizability of independent objects."""

from checkers.linearizable.checker import Linearizable, TooLargeToCertify, require_certifiable
from checkers.linearizable.model import Call, FailedCas, Model
from checkers.linearizable.objects import MODELS
from checkers.linearizable.objects.register import cas_register
from checkers.linearizable.values import Map, Truth

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
