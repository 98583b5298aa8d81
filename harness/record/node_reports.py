"""What an adapter may ask of the nodes' own events: a leaf, so that a program beside an adapter stays small."""

from __future__ import annotations

from typing import Any, Protocol


class NodeReports(Protocol):
    """The events of all nodes, for who needs some of them."""

    def of(self, *events: str) -> dict[str, list[dict[str, Any]]]:
        """Node -> its events of these names in its own order, with all columns; those without a time are left out."""


class NoReports:
    """`NodeReports` of nodes that say nothing."""

    def of(self, *events: str) -> dict[str, list[dict[str, Any]]]:
        return {}
