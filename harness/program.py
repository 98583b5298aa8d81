"""What a node runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Main = Callable[[Any, Mapping[str, Any]], Awaitable[None]]
"""A Python program: `await main(host, config)`, until it is cancelled."""


@dataclass(frozen=True, kw_only=True)
class PythonProgram:
    """A program written against a `Host`: the same in every environment."""

    main: str
    """`package.module:function`, a `Main`."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON data."""
