"""What a foreign history is a history of, as its operations show it.

Looked at is what clients asked (`f`), and of which kind values are: those that were asked with, and those of answers.

    :add 3, :read → #{1 3}        a set                :add 3, :read → 4             a counter
    :txn [[:append 1 2]]          list-append          :write [[:w 1 1]]             long-fork
    :poll [[:poll]], :assign [1]  a log, as Jepsen's kafka workload writes it

What fits several kinds or none is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.jepsen import edn
from harness.jepsen.convert import malformed, recorded_in
from harness.jepsen.log_parts import POSITIONING
from harness.jepsen.log_parts import TRANSACTIONS as LOG_TRANSACTIONS
from harness.jepsen.notations import renamed
from harness.jepsen.operation_columns import OperationColumns
from harness.jepsen.scan import MARKED_FINAL
from harness.jepsen.source import BrokenText
from harness.record.history.schema import OPERATION_TYPES

NOTHING = "nothing"
"""What clients did in a history without operations of any, in words."""
KAFKA = ("writes=interleaved",)
"""Kafka's transactions do not keep each other's sends apart."""
FIRST_BYTES = 1 << 16
"""Most histories show in so many what they are."""
MOST_VALUES = 100_000
"""Distinct values of a block that are looked at."""

INTEGER, TEXT, COLLECTION, MAP, PAIR, OTHER = "integers", "text", "collections", "maps", "pairs", "other values"
SCALARS = {INTEGER, TEXT, OTHER}
SILENT = ("read", "get", "dequeue", "drain", "generate", "pop")
"""Functions that are invoked without a value, where it is not lifted."""
ANSWERING = {"read", "txn"}
NO_FUNCTIONS: Mapping[str, str] = {}
OTHER_NAMES = {"broadcast": "add", "write-set": "add", "credit": "add", "debit": "-add"}
"""What tests call otherwise, and here is an add."""
OF_SETS, OF_COUNTERS = {"broadcast", "write-set"}, {"credit", "debit"}
"""Those that are an add to nothing else."""
TESTS: Mapping[str, frozenset[str]] = {
    "set": frozenset(("set", "set-full", "sets", "g-set", "broadcast")),
    "counter": frozenset(("counter", "g-counter", "pn-counter")),
    "cas-register": frozenset(("register", "cas-register", "lin-kv", "linearizable-register")),
    "causal-reverse": frozenset(("causal-reverse", "sequential")),
    "list-append": frozenset(("append", "list-append", "txn-list-append")),
    "rw-register": frozenset(("wr", "rw-register", "txn-rw-register")),
}
"""What tests of a kind are called, where operations leave several kinds open."""
_MICRO = {"r": "reads", "w": "writes", "append": "appends", "send": "sends", "poll": "polls"}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A way to judge a history: a workload with settings, or a model."""

    workload: str | None = None
    model: str | None = None
    settings: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    """What clients call otherwise, as `--function` takes it."""

    @property
    def name(self) -> str:
        return self.workload or self.model or ""

    def words(self) -> str:
        options = " ".join(
            (*(f"--set {setting}" for setting in self.settings), *(f"--function {one}" for one in self.functions))
        )
        return " ".join(
            filter(None, (f"--workload {self.workload}" if self.workload else f"--model {self.model}", options))
        )


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """What a history may be one of: exactly one, several, or none of what is known."""

    kinds: tuple[Kind, ...]
    seen: str
    """What its clients did, in words."""
    shows_nothing: bool = False
    """Whether no read or transaction was answered."""

    def of_test(self, name: str) -> Recognised:
        """The same, with the one kind that the name of the test stands for, if several are open."""
        words = set(re.findall(r"[\w-]+", name.lower()))
        meant = tuple(kind for kind in self.kinds if words & TESTS.get(kind.name, frozenset()))
        return replace(self, kinds=meant) if len(meant) == 1 else self


def recognised(path: Path, functions: Mapping[str, str] = NO_FUNCTIONS) -> Recognised:
    """Reads as far as it takes. `functions`: what clients call otherwise. Raises MalformedHistory, HarnessError."""
    seen = _Seen()
    kinds: tuple[Kind, ...] = ()
    rows = 0
    try:
        for recorded in recorded_in(path, first_bytes=FIRST_BYTES):
            rows += len(recorded)
            seen.take(renamed(recorded, functions, has_final_reads=False))
            kinds = _kinds(seen)
            # That some reads of a counter are final, only its end shows, and reads alone may come before anything.
            if len(kinds) == 1 and kinds[0].workload != "counter" and seen.asked.keys() != {"read"}:
                break
    except BrokenText as broken:
        raise malformed(path, rows, broken) from None
    except OSError as error:
        raise HarnessError(f"history {path} cannot be read: {error.strerror or error}") from error
    if len(kinds) > 1 and kinds[0].model and seen.has_answers:
        # A read of null finds a register empty; of a table it shows the rows, if only that there are none.
        kinds = kinds[:1]
    return Recognised(kinds=kinds, seen=seen.words(), shows_nothing=not seen.has_answers)


def is_of_kafka(path: Path, functions: Mapping[str, str] = NO_FUNCTIONS) -> bool:
    """Whether it is a log as Jepsen's kafka workload writes it. Raises MalformedHistory, HarnessError."""
    return any(kind.settings == KAFKA for kind in recognised(path, functions).kinds)


@dataclass
class _Seen:
    """Of each f of clients, the kinds of its values when it was invoked, and of answers."""

    asked: dict[str, set[str]] = field(default_factory=dict)
    answered: dict[str, set[str]] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)
    """Kinds of micro-operations."""
    several_writes: bool = False
    """Whether an operation writes more than once."""
    is_lifted: bool | None = None
    has_final_reads: bool = False
    has_answers: bool = False
    """Whether a read or a transaction was answered."""

    def take(self, recorded: OperationColumns) -> None:
        kinds, processes, fs, values = (recorded.fields[name] for name in ("type", "process", "f", "value"))
        marked = recorded.fields[MARKED_FINAL]
        self.has_final_reads |= any(value is True for value in marked.values)
        rows = set(zip(*(column.codes.tolist() for column in (kinds, processes, fs, values)), strict=True))
        operations: dict[tuple[str, str, int], Any] = {}
        for kind, process, f, value in rows:
            name, what = fs.values[f], kinds.values[kind]
            if processes.values[process].__class__ is int and isinstance(name, str) and what in OPERATION_TYPES[:2]:
                operations[what, name, value] = values.values[value]
        self.has_answers |= any(kind == "ok" and f in ANSWERING for kind, f, _ in operations)
        looked_at = [(*key[:2], operations[key]) for key in sorted(operations)][:MOST_VALUES]
        if self.is_lifted is None:
            self.is_lifted = _all_lifted([(f, value) for kind, f, value in looked_at if kind == "invoke"])
        for kind, f, value in looked_at:
            has_key = self.is_lifted and f not in POSITIONING and isinstance(value, tuple | list) and len(value) == 2
            has_key &= not isinstance(value, edn.Unordered)
            self._note(self.asked if kind == "invoke" else self.answered, f, value[1] if has_key else value)

    def _note(self, among: dict[str, set[str]], f: str, value: Any) -> None:
        found = among.setdefault(f, set())
        parts = _parts_of(value)
        if parts:
            self.parts |= parts
            self.several_writes |= parts == {"writes"} and len(value) > 1
            found.add("transactions")
        elif value is not None:
            found.add(_kind_of(value))

    def words(self) -> str:
        """`add (integers), read (→ collections)`."""
        if not self.asked and not self.answered:
            return NOTHING
        shown = []
        for f in sorted(self.asked.keys() | self.answered.keys()):
            asked, answered = (" and ".join(sorted(of.get(f, ()))) for of in (self.asked, self.answered))
            told = f"{asked} → {answered}" if answered and answered != asked else asked
            shown.append(f"{f} ({told.strip()})" if told else f)
        of_parts = f" of {', '.join(sorted(self.parts))}" if self.parts else ""
        return ", ".join(shown) + of_parts


def _all_lifted(invoked: Iterable[tuple[str, Any]]) -> bool:
    """Whether every value that was asked with is a key and what belongs to it."""
    invoked = list(invoked)
    if any(value is None and f in SILENT for f, value in invoked):
        return False
    given = [(f, value) for f, value in invoked if value is not None and f not in POSITIONING]
    return bool(given) and all(_may_be_lifted(f, value) for f, value in given)


def _may_be_lifted(f: str, value: Any) -> bool:
    if isinstance(value, edn.Lifted):
        return True
    is_pair = (
        isinstance(value, tuple | list)
        and not isinstance(value, edn.Unordered)
        and len(value) == 2
        and not isinstance(value[0], tuple | list | dict)
    )
    return is_pair and (f != "cas" or isinstance(value[1], tuple | list))


def _parts_of(value: Any) -> set[str]:
    """The kinds of micro-operations that a value consists of; none if it does not."""
    if not isinstance(value, tuple | list) or not value:
        return set()
    found = set()
    for part in value:
        if not isinstance(part, tuple | list) or not part or part[0] not in _MICRO:
            return set()
        found.add(_MICRO[part[0]])
    return found


def _kind_of(value: Any) -> str:
    if value.__class__ is int:
        return INTEGER
    if isinstance(value, dict):
        return MAP
    if isinstance(value, tuple | list):
        return PAIR if len(value) == 2 and not isinstance(value, edn.Unordered) else COLLECTION
    return TEXT if isinstance(value, str) else OTHER


def _kinds(seen: _Seen) -> tuple[Kind, ...]:
    """In the order of the rules; what is certain comes alone."""
    fs = set(seen.asked)
    if seen.parts:
        return _of_parts(fs, seen.parts, seen.several_writes)
    of_functions: tuple[tuple[set[str], set[str], Kind], ...] = (
        ({"enqueue", "dequeue"}, {"drain", "ack"}, Kind(workload="queue")),
        ({"transfer"}, {"read"}, Kind(workload="bank")),
        ({"get"}, {"put", "append"}, Kind(model="map")),
        ({"generate"}, set(), Kind(workload="unique-ids")),
        ({"echo"}, set(), Kind(model="echo")),
        ({"read-init"}, {"read", "write"}, Kind(workload="causal")),
        ({"inc"}, {"read"}, Kind(workload="monotonic")),
        ({"acquire", "release"}, set(), Kind(model="mutex")),
        ({"poll", "send", "final-poll", "caught-up"}, set(), Kind(workload="log")),
    )
    for one_of, others, kind in of_functions:
        if fs & one_of and fs <= one_of | others:
            return (kind,)
    called = tuple(f"{name}={function}" for name, function in OTHER_NAMES.items() if name in fs)
    if fs == {"read"}:
        return (Kind(model="cas-register"),) if seen.answered.get("read", set()) <= SCALARS else ()
    if fs and fs <= {"add", "read", *OTHER_NAMES}:
        kinds = _sums_or_sets(fs, seen.answered.get("read", set()))
        settings = ("reads=final",) if seen.has_final_reads else ()
        return tuple(
            replace(kind, functions=called, settings=settings if kind.workload == "counter" else ()) for kind in kinds
        )
    if fs and fs <= {"read", "write", "cas"}:
        return _registers_or_tables(seen, fs)
    return ()


def _of_parts(fs: set[str], parts: set[str], several_writes: bool) -> tuple[Kind, ...]:
    if parts <= {"sends", "polls"} and fs <= {*LOG_TRANSACTIONS, *POSITIONING}:
        return (Kind(workload="log", settings=KAFKA),)
    if not fs <= {"txn", "read", "write"}:
        return ()
    if "appends" in parts:
        return (Kind(workload="list-append"),) if parts <= {"reads", "appends"} else ()
    if parts <= {"reads", "writes"} and fs <= {"read", "write"} and "write" in fs:
        return (Kind(workload="rw-register" if several_writes else "long-fork"),)
    if parts == {"reads"}:
        return (Kind(workload="list-append"), Kind(workload="rw-register"))
    return (Kind(workload="rw-register"),) if parts <= {"reads", "writes"} else ()


def _sums_or_sets(fs: set[str], read: set[str]) -> tuple[Kind, ...]:
    if not read and fs & OF_SETS and not fs & OF_COUNTERS:
        return (Kind(workload="set"),)
    if not read and fs & OF_COUNTERS and not fs & OF_SETS:
        return (Kind(workload="counter"),)
    if read and read <= {COLLECTION, PAIR}:
        return (Kind(workload="set"),)
    if read == {INTEGER}:
        return (Kind(workload="counter"),)
    return () if read else (Kind(workload="set"), Kind(workload="counter"))


def _registers_or_tables(seen: _Seen, fs: set[str]) -> tuple[Kind, ...]:
    written, read = seen.asked.get("write", set()), seen.answered.get("read", set())
    if not written <= SCALARS:
        return ()
    if read and read <= {COLLECTION, PAIR} and "cas" not in fs:
        return (Kind(workload="causal-reverse"),)
    if read <= SCALARS and (read or "cas" in fs):
        return (Kind(model="cas-register"),)
    return () if read else (Kind(model="cas-register"), Kind(workload="causal-reverse"))
