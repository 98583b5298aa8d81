"""Settings of a node, from its JSON config: each error names the setting, what was expected and what came.

A system states its settings as fields of a frozen dataclass, each with its name in JSON and what an empty config means:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class NameServerConfig:
        listen_port: int = port("listenPort", 9876)
        scan_interval_s: float = seconds("scanNotActiveBrokerInterval", 5_000)

    read_config(NameServerConfig, {"listenPort": 9877})
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from enum import Enum
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeVar


class Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=Enum)
C = TypeVar("C", bound=Dataclass)


class Settings:
    """Typed access to a config by the names of its settings. Raises ValueError for a wrong one."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    def integer(self, name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
        value = self.config.get(name, default)
        if type(value) is not int or value < minimum or (maximum is not None and value > maximum):
            span = f"from {minimum} on" if maximum is None else f"from {minimum} to {maximum}"
            raise ValueError(f"{name}: expected a whole number {span}, got {value!r}")
        return value

    def seconds_from_ms(self, name: str, default_ms: int, *, minimum_ms: int = 1) -> float:
        """A setting given in milliseconds, as seconds."""
        return self.integer(name, default_ms, minimum=minimum_ms) / 1000

    def flag(self, name: str, default: bool) -> bool:
        value = self.config.get(name, default)
        if type(value) is not bool:
            raise ValueError(f"{name}: expected true or false, got {value!r}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A non-empty string; without a default it must be there."""
        value = self.config.get(name, default)
        if type(value) is not str or not value:
            raise ValueError(f"{name}: expected text, got {value!r}")
        return value

    def choice(self, name: str, default: E) -> E:
        """A value of the default's enumeration, all of whose values are text."""
        value = self.text(name, default.value)
        values = [each.value for each in type(default)]
        if value not in values:
            raise ValueError(f"{name}: expected {(' or ' if len(values) == 2 else ', ').join(values)}, got {value!r}")
        return type(default)(value)

    def path(self, name: str, default: str) -> str:
        """A directory within the node's own file tree, in which an absolute one begins as well."""
        value = self.text(name, default)
        parts = [part for part in value.split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            raise ValueError(f"{name}: expected a directory, got {value!r}")
        return "/".join(parts)

    def optional_port(self, name: str) -> int | None:
        return None if self.config.get(name) is None else self.port(name, 0)

    def port(self, name: str, default: int) -> int:
        value = self.integer(name, default)
        if not 0 <= value <= 65535:
            raise ValueError(f"{name}: expected a port from 0 to 65535, got {value}")
        return value

    def addresses(self, name: str) -> tuple[str, ...]:
        """Addresses `name:port` with semicolons between, or a list of them."""
        value = self.config.get(name, "")
        parts = value.split(";") if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"{name}: expected addresses with semicolons between, got {value!r}")
        addresses = tuple(part.strip() for part in parts if part.strip())
        for address in addresses:
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit():
                raise ValueError(f"{name}: expected name:port, got {address!r}")
        return addresses


def setting(read: Callable[Concatenate[Settings, str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Declares fields of dataclasses, by their settings' names and what else `read` takes. A field that is not set when
    the dataclass is made by hand has the value that `read` takes from an empty config."""

    def declare(name: str, /, *args: P.args, **options: P.kwargs) -> T:
        def take(settings: Settings) -> T:
            return read(settings, name, *args, **options)

        return field(default_factory=lambda: take(Settings({})), metadata={"setting": name, "take": take})

    return declare


integer = setting(Settings.integer)
seconds = setting(Settings.seconds_from_ms)
flag = setting(Settings.flag)
text = setting(Settings.text)
path = setting(Settings.path)
port = setting(Settings.port)
optional_port = setting(Settings.optional_port)
addresses = setting(Settings.addresses)


def choice(name: str, default: E) -> E:
    return setting(Settings.choice)(name, default)


def nested(kind: type[C]) -> C:
    """Declares a field whose fields are settings of the same config."""
    return field(default_factory=kind, metadata={"take": lambda settings: read_config(kind, settings.config)})


def read_config(kind: type[C], config: Mapping[str, Any]) -> C:
    """A dataclass all of whose fields are declared as above. Raises ValueError that names the wrong setting."""
    settings = Settings(config)
    return kind(**{each.name: each.metadata["take"](settings) for each in fields(kind)})


def fields_by_setting(kind: type[C]) -> dict[str, str]:
    """Names of fields by those of their settings, in the order of their declaration."""
    return {each.metadata["setting"]: each.name for each in fields(kind) if "setting" in each.metadata}


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
