"""Reading settings from a node's JSON config: each error names the setting, what was expected and what came."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any


class Settings:
    """Typed access to a config by the names of its settings. Raises ValueError for a wrong one."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def integer(self, name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
        value = self._config.get(name, default)
        if type(value) is not int or value < minimum or (maximum is not None and value > maximum):
            span = f"from {minimum} on" if maximum is None else f"from {minimum} to {maximum}"
            raise ValueError(f"{name}: expected a whole number {span}, got {value!r}")
        return value

    def seconds_from_ms(self, name: str, default_ms: int, *, minimum_ms: int = 1) -> float:
        """A setting given in milliseconds, as seconds."""
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

    def path(self, name: str, default: str) -> str:
        """A directory within the node's own file tree, in which an absolute one begins as well."""
        value = self.text(name, default)
        parts = [part for part in value.split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            raise ValueError(f"{name}: expected a directory, got {value!r}")
        return "/".join(parts)

    def optional_port(self, name: str) -> int | None:
        return None if self._config.get(name) is None else self.port(name, 0)

    def port(self, name: str, default: int) -> int:
        value = self.integer(name, default)
        if not 0 <= value <= 65535:
            raise ValueError(f"{name}: expected a port from 0 to 65535, got {value}")
        return value

    def addresses(self, name: str) -> tuple[str, ...]:
        """Addresses `name:port` with semicolons between, or a list of them."""
        value = self._config.get(name, "")
        parts = value.split(";") if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"{name}: expected addresses with semicolons between, got {value!r}")
        addresses = tuple(part.strip() for part in parts if part.strip())
        for address in addresses:
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit():
                raise ValueError(f"{name}: expected name:port, got {address!r}")
        return addresses


class WatchedConfig(Mapping[str, Any]):
    """A config that notes which settings were asked for: one that nobody asks for is misspelled."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._asked: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        self._asked[name] = None
        return self._config[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._config)

    def __len__(self) -> int:
        return len(self._config)

    def refuse_unknown(self) -> None:
        """Raises ValueError that names the first setting nobody asked for. To be called once all have read."""
        for name in sorted(self._config):
            if name not in self._asked:
                known = difflib.get_close_matches(name, list(self._asked), n=1)
                hint = f"; did you mean {known[0]}?" if known else ""
                raise ValueError(f"{name}: there is no such setting{hint}")
