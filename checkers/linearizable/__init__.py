"""Linearizability of independent objects."""

from checkers.linearizable.checker import LinearizableRegister
from checkers.linearizable.operations import FailedCas

__all__ = ["FailedCas", "LinearizableRegister"]
