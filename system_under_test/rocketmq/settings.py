"""Reading settings from a node's JSON config: each error names the setting, what was expected and what came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Settings:
    """Typed access to a config by the seed's setting names. Raises ValueError for a wrong one."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def integer(self, name: str, default: int, *, minimum: int = 0) -> int:
        value = self._config.get(name, default)
        if type(value) is not int or value < minimum:
            raise ValueError(f"{name}: expected a whole number from {minimum} on, got {value!r}")
        return value

    def seconds_from_ms(self, name: str, default_ms: int, *, minimum_ms: int = 1) -> float:
        """A setting told in milliseconds, as seconds."""
        return self.integer(name, default_ms, minimum=minimum_ms) / 1000

    def flag(self, name: str, default: bool) -> bool:
        value = self._config.get(name, default)
        if type(value) is not bool:
            raise ValueError(f"{name}: expected true or false, got {value!r}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A non-empty string; without a default it must be there."""
        value = self._config.get(name, default)
        if type(value) is not str or not value:
            raise ValueError(f"{name}: expected text, got {value!r}")
        return value

    def port(self, name: str, default: int) -> int:
        value = self.integer(name, default)
        if not 0 <= value <= 65535:
            raise ValueError(f"{name}: expected a port from 0 to 65535, got {value}")
        return value
