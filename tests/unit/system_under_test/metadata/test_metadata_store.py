"""The metadata store's state machine, alone and against a dumb model of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from system_under_test.metadata import store as commands
from system_under_test.metadata.access import Versioned
from system_under_test.metadata.store import (
    MAX_REMEMBERED,
    Done,
    MalformedCommand,
    MalformedSnapshot,
    MetadataStore,
    Result,
    SessionIsOver,
    VersionDiffers,
)


def a_store(*applied: bytes) -> MetadataStore:
    store = MetadataStore()
    for command in applied:
        commands.check(command)
        store.apply(command)
    return store


def test_a_change_is_made_only_if_its_version_fits():
    store = a_store(commands.create("k", "a", None))
    assert store.apply(commands.create("k", "b", None)) == VersionDiffers(1)
    assert store.apply(commands.put("k", "b", 2)) == VersionDiffers(1)
    assert store.apply(commands.put("k", "b", 1)) == Done(2)
    assert store.apply(commands.delete("k", 1)) == VersionDiffers(2)
    assert store.get("k") == Versioned("b", 2)
    assert store.apply(commands.put("absent", "b", 0)) == VersionDiffers(None)
    assert store.apply(commands.delete("absent", 0)) == VersionDiffers(None)


def test_a_key_created_again_never_has_a_version_that_it_had_before():
    store = a_store(commands.create("k", "a", None), commands.delete("k", 1))
    assert store.get("k") is None
    assert store.apply(commands.create("k", "a", None)) == Done(3)


def test_ephemeral_keys_go_with_their_session_and_no_others():
    store = a_store(commands.open_session("s"), commands.open_session("t"))
    for key, session in (("a", "s"), ("b", "t"), ("c", None), ("d", "s"), ("e", "s")):
        store.apply(commands.create(key, "", session))
    store.apply(commands.delete("e", 5))
    store.apply(commands.put("a", "changed", 1))
    assert store.get("a") == Versioned("changed", 7, "s")
    assert store.apply(commands.end_session("s")) == Done(8)
    assert list(store.list("")) == ["b", "c"]
    assert store.apply(commands.end_session("s")) == SessionIsOver()
    assert store.apply(commands.create("a", "", "s")) == SessionIsOver()
    assert store.apply(commands.create("a", "", "t")) == Done(9)


def test_a_session_that_is_opened_twice_keeps_its_keys():
    store = a_store(commands.open_session("s"), commands.create("a", "", "s"), commands.open_session("s"))
    store.apply(commands.end_session("s"))
    assert store.get("a") is None


def test_numbers_only_grow_and_change_no_version():
    store = a_store(commands.create("k", "", None))
    given = [store.apply(commands.number(counter)) for counter in ("n", "n", "m", "n")]
    assert given == [Done(1), Done(2), Done(1), Done(3)]
    assert store.version == 1


def test_only_changes_under_the_prefix_and_after_the_version_are_heard():
    store = a_store(commands.create("/a/1", "", None), commands.create("/b/1", "", None))
    assert store.has_changed("/a/", 0)
    assert not store.has_changed("/a/", 1)
    assert store.has_changed("/b/", 1)
    assert not store.has_changed("/c/", 0)
    assert not store.has_changed("", 2)
    store.apply(commands.delete("/a/1", 1))
    assert store.has_changed("/a/", 2)


def test_where_it_is_forgotten_what_changed_it_may_have_been_anything():
    store = a_store(commands.create("/a", "", None))
    for version in range(1, MAX_REMEMBERED + 2):
        store.apply(commands.put("/a", "", version))
    assert store.version == MAX_REMEMBERED + 2
    assert store.has_changed("/b", 0)
    assert store.has_changed("/b", 1)
    assert not store.has_changed("/b", 2)
    restored = MetadataStore()
    restored.restore(store.snapshot())
    assert restored.has_changed("/b", store.version - 1)
    assert not restored.has_changed("/b", store.version)


@pytest.mark.parametrize(
    "command",
    [
        b"",
        b"[]",
        b"{}",
        b"7",
        b'{"put":["k","v"]}',
        b'{"put":["k","v",1.0]}',
        b'{"put":["k","v",true]}',
        b'{"put":["k","v",-1]}',
        b'{"put":["","v",1]}',
        b'{"put":["k",7,1]}',
        b'{"create":["k","v",7]}',
        b'{"create":["k","v",""]}',
        b'{"delete":{"k":1}}',
        b'{"number":[]}',
        b'{"open":[null]}',
        b'{"drop":["k"]}',
        b'{"open":["s"],"end":["s"]}',
        b'{"open":["%b"]}' % (b"s" * 513),
        b'{"create":["k","%b",null]}' % (b"v" * (1024 * 1024 + 1)),
    ],
)
def test_a_command_that_could_not_be_applied_is_refused_before(command: bytes):
    with pytest.raises(MalformedCommand):
        commands.check(command)


@pytest.mark.parametrize(
    "snapshot",
    [
        b"",
        b"[]",
        b"{}",
        b'{"version":1,"entries":[],"numbers":[]}',
        b'{"version":1.5,"entries":[],"numbers":[],"sessions":[]}',
        b'{"version":1,"entries":[["k","v",1]],"numbers":[],"sessions":[]}',
        b'{"version":1,"entries":[["k","v",2,null]],"numbers":[],"sessions":[]}',
        b'{"version":1,"entries":[["k","v",1,"s"]],"numbers":[],"sessions":[]}',
        b'{"version":1,"entries":[],"numbers":[["n","1"]],"sessions":[]}',
        b'{"version":1,"entries":[],"numbers":[],"sessions":[7]}',
        b'{"version":1,"entries":[],"numbers":[],"sessions":"st"}',
        b'{"version":1,"entries":[],"numbers":[],"sessions":[],"more":1}',
    ],
)
def test_bytes_that_are_no_snapshot_are_refused_and_change_nothing(snapshot: bytes):
    store = a_store(commands.create("k", "v", None))
    with pytest.raises(MalformedSnapshot):
        store.restore(snapshot)
    assert store.get("k") == Versioned("v", 1)


@dataclass
class Model:
    """All that was ever written, and nothing else."""

    history: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    """Key, value (None: deleted) and session of the changes that took place; those of a command at one place."""
    versions: dict[str, int] = field(default_factory=dict)
    ended: dict[str, bool] = field(default_factory=dict)
    counted: list[str] = field(default_factory=list)
    version: int = 0

    def value(self, key: str) -> tuple[str | None, str | None]:
        return next(((value, owner) for name, value, owner in reversed(self.history) if name == key), (None, None))

    def found(self, key: str) -> int | None:
        return None if self.value(key)[0] is None else self.versions[key]

    def change(self, *changes: tuple[str, str | None, str | None]) -> Result:
        self.version += bool(changes)
        for key, _, _ in changes:
            self.versions[key] = self.version
        self.history += changes
        return Done(self.version)

    def create(self, key: str, value: str, session: str | None) -> Result:
        if session is not None and self.ended.get(session, True):
            return SessionIsOver()
        found = self.found(key)
        return self.change((key, value, session)) if found is None else VersionDiffers(found)

    def put(self, key: str, value: str, version: int) -> Result:
        found = self.found(key)
        return self.change((key, value, self.value(key)[1])) if found == version else VersionDiffers(found)

    def delete(self, key: str, version: int) -> Result:
        found = self.found(key)
        return self.change((key, None, None)) if found == version else VersionDiffers(found)

    def number(self, counter: str) -> Result:
        self.counted.append(counter)
        return Done(self.counted.count(counter))

    def open_session(self, session: str) -> Result:
        self.ended[session] = False
        return Done(self.version)

    def end_session(self, session: str) -> Result:
        if self.ended.get(session, True):
            return SessionIsOver()
        self.ended[session] = True
        owned = [key for key in sorted(self.versions) if self.value(key)[1] == session]
        return self.change(*((key, None, None) for key in owned))

    def list(self, prefix: str) -> dict[str, Versioned]:
        found = {}
        for key, version in sorted(self.versions.items()):
            value, session = self.value(key)
            if value is not None and key.startswith(prefix):
                found[key] = Versioned(value, version, session)
        return found


def a_step(draw: random.Random, version: int) -> tuple[str, tuple[str | int | None, ...]]:
    """The name of a command, of the model's method as well, and its arguments."""
    key, value, session = draw.choice(("/a", "/a/b", "/b", "ü")), str(draw.randint(0, 9)), draw.choice("sft")
    near = draw.randint(max(0, version - 3), version + 1)
    steps: list[tuple[str, tuple[str | int | None, ...]]] = [
        ("create", (key, value, draw.choice((None, session)))),
        ("put", (key, value, near)),
        ("delete", (key, near)),
        ("number", (draw.choice("nm"),)),
        ("open_session", (session,)),
        ("end_session", (session,)),
    ]
    return draw.choice(steps)


def test_random_commands_give_what_the_model_gives_also_after_a_snapshot():
    refused = ended = 0
    for seed in range(60):
        draw = random.Random(seed)
        store, model = MetadataStore(), Model()
        for _ in range(120):
            name, arguments = a_step(draw, store.version)
            make: Callable[..., bytes] = getattr(commands, name)
            command = make(*arguments)
            commands.check(command)
            before = model.version
            given, expected = store.apply(command), getattr(model, name)(*arguments)
            assert given == expected, (seed, name, arguments)
            refused += isinstance(given, VersionDiffers)
            ended += name == "end_session" and model.version > before
            if draw.random() < 0.05:
                restored = MetadataStore()
                restored.restore(store.snapshot())
                assert restored.snapshot() == store.snapshot()
                store = restored
            prefix = draw.choice(("", "/", "/a", "/a/", "ü", "z"))
            assert store.list(prefix) == model.list(prefix)
            assert list(store.list(prefix)) == sorted(store.list(prefix))
            assert store.sessions == tuple(sorted(session for session, over in model.ended.items() if not over))
    assert refused > 1_000
    assert ended > 50
