"""Which objects have a decider, by the name of their model."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.linearizable.unique.spans import Decider

DECIDERS: Mapping[str, Decider] = {}
