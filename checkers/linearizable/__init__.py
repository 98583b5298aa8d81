"""Linearizability of independent objects."""

from checkers.linearizable.checker import LinearizableRegister

__all__ = ["LinearizableRegister"]
