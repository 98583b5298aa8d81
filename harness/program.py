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
    """`package.module:function`, a `Main`. Whatever it imports is copied into its image, package by package."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON data."""
    requirements: tuple[str, ...] = ()
    """Requirements that pip installs into the image instead of copying: packages with compiled parts."""
