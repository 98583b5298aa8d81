"""The metadata store as a pure state machine: keys with versions, numbers given out, sessions with ephemeral keys.

Commands are decided when they are applied, alike on every node, so any number of them may be under way at once. Each is
a JSON object of one kind:
    {"create": [key, value, session or null]}   refused where the key is there
    {"put": [key, value, version]}              refused unless the key has this version
    {"delete": [key, version]}                  likewise
    {"number": [counter]}                       the counter's next number, from 1 on
    {"open": [session]}                         a session begins; nothing happens if it is there
    {"end": [session]}                          it ends, and its ephemeral keys go
The version of a key is the number of the command that changed it last, counting only those that changed keys.

When a session ends is not decided here: who leads says so, by its own clock, with a command.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from system_under_test.metadata.access import Versioned
from system_under_test.remoting.json_body import decode_json

MAX_KEY_CHARACTERS: Final = 512
"""The longest name of a key, a counter or a session."""
MAX_VALUE_CHARACTERS: Final = 1024 * 1024
"""The longest value of a key."""
MAX_REMEMBERED: Final = 1024
"""Changes whose keys are remembered for those that wait; of older ones it is not known what they changed."""


class MalformedCommand(ValueError):
    """A command that could not be applied; refused before it is proposed."""


class MalformedSnapshot(ValueError):
    """Bytes that no store gave as its snapshot."""


@dataclass(frozen=True, slots=True)
class Done:
    number: int
    """The key's new version, or the counter's number; of other commands the newest version of any key."""


@dataclass(frozen=True, slots=True)
class VersionDiffers:
    found: int | None
    """The version of the key, None if it is not there."""


@dataclass(frozen=True, slots=True)
class SessionIsOver:
    """There is no such session, or none any more."""


Result = Done | VersionDiffers | SessionIsOver


def create(key: str, value: str, session: str | None) -> bytes:
    """`session`: whose ephemeral key it is to be."""
    return _dump("create", key, value, session)


def put(key: str, value: str, version: int) -> bytes:
    return _dump("put", key, value, version)


def delete(key: str, version: int) -> bytes:
    return _dump("delete", key, version)


def number(counter: str) -> bytes:
    return _dump("number", counter)


def open_session(session: str) -> bytes:
    return _dump("open", session)


def opens_session(command: bytes) -> bool:
    return command.startswith(b'{"open"')


def end_session(session: str) -> bytes:
    return _dump("end", session)


def _dump(kind: str, *arguments: Any) -> bytes:
    return json.dumps({kind: arguments}, separators=(",", ":")).encode()


def _is_name(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= MAX_KEY_CHARACTERS


def _is_value(value: Any) -> bool:
    return type(value) is str and len(value) <= MAX_VALUE_CHARACTERS


def _is_version(value: Any) -> bool:
    return type(value) is int and value >= 0


_ARGUMENTS: Final = {
    "create": (_is_name, _is_value, lambda value: value is None or _is_name(value)),
    "put": (_is_name, _is_value, _is_version),
    "delete": (_is_name, _is_version),
    "number": (_is_name,),
    "open": (_is_name,),
    "end": (_is_name,),
}


def check(command: bytes) -> None:
    """Raises MalformedCommand unless `apply` will understand it."""
    try:
        ((kind, arguments),) = decode_json(command).items()
    except (ValueError, AttributeError) as error:
        raise MalformedCommand(f"no command: {error!r}") from error
    tests = _ARGUMENTS.get(kind)
    if tests is None:
        raise MalformedCommand(f"expected one of {', '.join(_ARGUMENTS)}, got {kind!r}")
    if not isinstance(arguments, list) or len(arguments) != len(tests):
        raise MalformedCommand(f"{kind} takes {len(tests)} arguments in a list")
    for place, (fits, argument) in enumerate(zip(tests, arguments, strict=True), start=1):
        if not fits(argument):
            raise MalformedCommand(f"argument {place} of {kind} has a wrong type, or is too long")


class MetadataStore:
    """Reading attributes and calling what only reads is free; `apply` and `restore` alone change it."""

    def __init__(self) -> None:
        self.version = 0
        """The greatest version that any key has had."""
        self._entries: dict[str, Versioned] = {}
        self._keys: list[str] = []
        """All keys, sorted."""
        self._numbers: dict[str, int] = {}
        self._sessions: dict[str, set[str]] = {}
        """The ephemeral keys of each."""
        self._changes: deque[tuple[int, str]] = deque()
        """The keys of the last changes, with the versions that these gave them."""
        self._forgotten = 0
        """The version of the last change that is not among them any more."""

    @property
    def sessions(self) -> tuple[str, ...]:
        """Sorted."""
        return tuple(sorted(self._sessions))

    def has_session(self, session: str) -> bool:
        return session in self._sessions

    def get(self, key: str) -> Versioned | None:
        return self._entries.get(key)

    def list(self, prefix: str) -> dict[str, Versioned]:
        """Sorted by key."""
        found = {}
        for place in range(bisect_left(self._keys, prefix), len(self._keys)):
            key = self._keys[place]
            if not key.startswith(prefix):
                break
            found[key] = self._entries[key]
        return found

    def has_changed(self, prefix: str, since: int) -> bool:
        """Whether a key that begins so was changed or deleted after version `since`; also where that is not known."""
        if since >= self.version:
            return False
        for version, key in reversed(self._changes):
            if version <= since:
                return False
            if key.startswith(prefix):
                return True
        return since < self._forgotten

    def apply(self, command: bytes) -> Result:
        """Of a command that `check` accepts."""
        ((kind, arguments),) = json.loads(command).items()
        if kind == "create":
            return self._create(*arguments)
        if kind == "put":
            return self._put(*arguments)
        if kind == "delete":
            return self._delete(*arguments)
        (name,) = arguments
        if kind == "number":
            self._numbers[name] = self._numbers.get(name, 0) + 1
            return Done(self._numbers[name])
        if kind == "open":
            self._sessions.setdefault(name, set())
            return Done(self.version)
        return self._end(name)

    def _create(self, key: str, value: str, session: str | None) -> Result:
        found = self._entries.get(key)
        if session is not None and session not in self._sessions:
            return SessionIsOver()
        if found is not None:
            return VersionDiffers(found.version)
        if session is not None:
            self._sessions[session].add(key)
        insort(self._keys, key)
        return self._write(key, value, session)

    def _put(self, key: str, value: str, version: int) -> Result:
        found = self._entries.get(key)
        if found is None or found.version != version:
            return VersionDiffers(None if found is None else found.version)
        return self._write(key, value, found.session)

    def _write(self, key: str, value: str, session: str | None) -> Done:
        self.version += 1
        self._entries[key] = Versioned(value, self.version, session)
        self._note(key)
        return Done(self.version)

    def _delete(self, key: str, version: int) -> Result:
        found = self._entries.get(key)
        if found is None or found.version != version:
            return VersionDiffers(None if found is None else found.version)
        if found.session is not None:
            self._sessions[found.session].remove(key)
        self.version += 1
        self._remove(key)
        return Done(self.version)

    def _end(self, session: str) -> Result:
        keys = self._sessions.pop(session, None)
        if keys is None:
            return SessionIsOver()
        if keys:
            self.version += 1
        for key in sorted(keys):
            self._remove(key)
        return Done(self.version)

    def _remove(self, key: str) -> None:
        del self._entries[key]
        del self._keys[bisect_left(self._keys, key)]
        self._note(key)

    def _note(self, key: str) -> None:
        self._changes.append((self.version, key))
        if len(self._changes) > MAX_REMEMBERED:
            self._forgotten, _ = self._changes.popleft()

    def snapshot(self) -> bytes:
        """The same bytes wherever the same commands were applied."""
        fields = {
            "version": self.version,
            "entries": [
                [key, entry.value, entry.version, entry.session] for key, entry in sorted(self._entries.items())
            ],
            "numbers": sorted(self._numbers.items()),
            "sessions": self.sessions,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    def restore(self, snapshot: bytes) -> None:
        """Become what gave that snapshot. What changed before it is not known any more. Raises MalformedSnapshot."""
        fields = _checked_snapshot(snapshot)
        self.version = self._forgotten = fields["version"]
        self._changes.clear()
        self._entries = {key: Versioned(value, at, session) for key, value, at, session in fields["entries"]}
        self._keys = sorted(self._entries)
        self._numbers = dict(fields["numbers"])
        self._sessions = {session: set() for session in fields["sessions"]}
        for key, entry in self._entries.items():
            if entry.session is not None:
                self._sessions[entry.session].add(key)


def _checked_snapshot(snapshot: bytes) -> dict[str, Any]:
    """Its fields. Raises MalformedSnapshot."""
    try:
        fields = decode_json(snapshot)
        sessions = fields["sessions"]
        fits = (
            fields.keys() == {"version", "entries", "numbers", "sessions"}
            and _is_version(fields["version"])
            and type(sessions) is list
            and all(_is_name(session) for session in sessions)
            and all(_is_name(counter) and _is_version(last) for counter, last in fields["numbers"])
            and all(
                _is_name(key)
                and _is_value(value)
                and _is_version(version)
                and version <= fields["version"]
                and (session is None or session in sessions)
                for key, value, version, session in fields["entries"]
            )
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MalformedSnapshot(f"no snapshot of the metadata store: {error!r}") from error
    if not fits:
        raise MalformedSnapshot("a snapshot of the metadata store has a wrong field")
    return dict(fields)
