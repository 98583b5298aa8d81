"""Linearizability of independent objects."""

from checkers.linearizable.checker import LinearizableRegister
from checkers.linearizable.models import MODELS, Call, FailedCas, Model, cas_register
from checkers.linearizable.objects import Linearizable

__all__ = ["MODELS", "Call", "FailedCas", "Linearizable", "LinearizableRegister", "Model", "cas_register"]
