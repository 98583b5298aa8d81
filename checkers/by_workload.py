"""Which checker judges the history of which workload, and of what Arrow type that history's values are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from checkers.bank import TRANSFER_AND_BALANCES, BankChecker, Overdraft
from checkers.causal.checker import CAUSAL_OPERATIONS, CausalChecker
from checkers.causal.long_fork import LongForkChecker
from checkers.counter import CounterChecker
from checkers.delay import DELAYED, DelayChecker
from checkers.evidence import Evidence, any_ok, reading, shows_a_value, shows_members
from checkers.log import LogChecker
from checkers.log.rows import EVIDENCE as LOG_EVIDENCE
from checkers.log.rows import LOG_MESSAGES
from checkers.log.rows import REPEATS as LOG_REPEATS
from checkers.monotonic import TOLD_VALUES, MonotonicChecker
from checkers.multiset.causal_reverse import CausalReverseChecker
from checkers.multiset.order import Order
from checkers.multiset.queue import Delivery, QueueChecker
from checkers.multiset.rows import ELEMENTS
from checkers.multiset.set import Reads, SetChecker
from checkers.multiset.unique_ids import UniqueIdsChecker
from checkers.plan import Checker
from checkers.repeats import Repeats, members, parts
from checkers.transactions.anomalies import NO_ORDER
from checkers.transactions.checker import SERIAL, ListAppend, RwRegister
from checkers.transactions.elle.graph.cycles import NAMES as CYCLES
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import Model

Options = Mapping[str, str]

TRANSACTIONS = parts("txn", written=("w", "append"))


@dataclass(frozen=True)
class SomeOf:
    """The kind of an option that is any number of an enum's values, with commas between them."""

    kind: type[Enum]


Kind = type[Enum] | type[int] | SomeOf


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A workload whose history can be judged without its run."""

    about: str
    value_type: pa.DataType
    functions: tuple[str, ...]
    checker: Callable[..., Checker]
    anomalies: tuple[str, ...]
    """Names of broken promises; what exactly they are says the checker's module."""
    repeats: tuple[Repeats, ...]
    """What completions may only repeat of what was asked; all else is an answer, and theirs to tell."""
    evidence: tuple[Evidence, ...]
    """What could contradict it: a history without any proves nothing."""
    options: Mapping[str, Kind] = field(default_factory=dict)
    """What the checker can be told, by the names of its fields."""


OF_TRANSACTIONS = (
    *CYCLES,
    "G1a",
    "G1b",
    "future-read",
    "garbage-read",
    "internal",
    "lost-update",
)

NO_ORDER_OF_LISTS = tuple(
    model
    for model in Model
    if model
    not in (
        # They are broken by cycles, which have names of their own: those at the bottom, and those at the top.
        Model.READ_UNCOMMITTED,
        Model.STRONG_SESSION_READ_UNCOMMITTED,
        Model.PL_2,
        *SERIAL,
        # Beside cycles and what weaker models forbid they demand nothing: where a read says which of two versions was
        # first, the lists that were read say so as well, or contradict it without any session.
        Model.STRONG_SESSION_READ_COMMITTED,
        Model.STRONG_SESSION_READ_ATOMIC,
        # It allows what consistent view does, which is weaker, but for reads called internal.
        Model.PARALLEL_SNAPSHOT_ISOLATION,
    )
)
"""Of the models that no order explains a history in, the weakest are told: these can be. Where the search for cycles
was given up, others are."""

NO_ORDER_OF_REGISTERS = tuple(
    model
    for model in Model
    if model
    not in (
        # Some order always keeps these, for no read tells the order of versions.
        Model.READ_UNCOMMITTED,
        Model.STRONG_SESSION_READ_UNCOMMITTED,
        # It demands that information flows one way. What flows in a circle is called G1c, and needs no order.
        Model.PL_2,
        # Those allow what consistent view and repeatable read do, which are weaker, but for reads called internal.
        Model.PARALLEL_SNAPSHOT_ISOLATION,
        Model.SERIALIZABLE,
    )
)
"""Those that can be the weakest one broken. Of histories too long to decide them all, the demanded one is told as well,
whichever it is."""


def _no_order(models: Iterable[Model]) -> tuple[str, ...]:
    return tuple(f"{NO_ORDER}{model.value}" for model in models)


WORKLOADS: Mapping[str, Judged] = {
    "bank": Judged(
        about="money moves between accounts, and none is made or lost",
        value_type=TRANSFER_AND_BALANCES,
        functions=("transfer", "read"),
        repeats=(members("transfer", of=("from", "to", "amount")),),
        evidence=(shows_members("read", "balances", "that shows balances"),),
        checker=BankChecker,
        anomalies=("negative-balance", "null-balance", "unexpected-account", "wrong-total"),
        options={"total": int, "accounts": int, "overdraft": Overdraft},
    ),
    "causal": Judged(
        about="nobody sees an effect without its causes",
        value_type=CAUSAL_OPERATIONS,
        functions=("read", "read-init", "write", "txn"),
        repeats=(members("write"), TRANSACTIONS),
        evidence=(*any_ok("read", "read-init"), reading("txn", "r")),
        checker=CausalChecker,
        anomalies=("aborted-read", "broken-link", "cyclic-causality", "initial-read", "overwritten-read", "unexpected"),
        options={"initial": int},
    ),
    "causal-reverse": Judged(
        about="who sees a write sees all that were over before it began",
        value_type=ELEMENTS,
        functions=("write", "read"),
        repeats=(members("write"),),
        evidence=(shows_members("read", "values", "that shows a write"), shows_a_value("read")),
        checker=CausalReverseChecker,
        anomalies=("aborted-read", "causal-reverse", "unexpected"),
    ),
    "counter": Judged(
        about="a read lies between what must have been added and what may have been",
        value_type=ELEMENTS,
        functions=("add", "read"),
        repeats=(members("add"),),
        evidence=(shows_a_value("read"),),
        checker=CounterChecker,
        anomalies=("out-of-bounds",),
        options={"initial": int},
    ),
    "delay": Judged(
        about="what is due later is delivered then, and not before",
        value_type=DELAYED,
        functions=("send", "deliver"),
        repeats=(members("send", of=("message",)),),
        evidence=any_ok("deliver"),
        checker=DelayChecker,
        anomalies=("delivered-early", "delivered-late"),
        options={"tolerance_ms": int, "latest_ms": int},
    ),
    "list-append": Judged(
        about="transactions on lists are isolated as a consistency model says",
        value_type=TRANSACTION,
        functions=("txn",),
        repeats=(TRANSACTIONS,),
        evidence=(reading("txn", "r"),),
        checker=ListAppend,
        anomalies=(
            *OF_TRANSACTIONS,
            *_no_order(NO_ORDER_OF_LISTS),
            "dirty-update",
            "duplicate-elements",
            "incompatible-order",
        ),
        options={"model": Model},
    ),
    "log": Judged(
        about="what was acked is kept, at its offset",
        value_type=LOG_MESSAGES,
        functions=("send", "poll", "final-poll", "caught-up", "txn"),
        repeats=LOG_REPEATS,
        evidence=LOG_EVIDENCE,
        checker=LogChecker,
        anomalies=(
            *CYCLES,
            "aborted-read",
            "consumer-offset-skip",
            "dirty-read",
            "diverging-replicas",
            "duplicate",
            "inconsistent-offsets",
            "internal-nonmonotonic",
            "internal-skip",
            "lost-write",
            "nonmonotonic-poll",
            "nonmonotonic-send",
            "poll-skip",
            "unexpected-read",
            "unseen",
        ),
    ),
    "long-fork": Judged(
        about="two writes are seen in one order by everybody",
        value_type=TRANSACTION,
        functions=("read", "write", "txn"),
        repeats=(parts("read", "write", "txn", written=("w",)),),
        evidence=tuple(reading(f, "r") for f in ("read", "write", "txn")),
        checker=LongForkChecker,
        anomalies=("aborted-read", "long-fork", "unexpected"),
    ),
    "monotonic": Judged(
        about="what a process has read it never reads smaller again",
        value_type=TOLD_VALUES,
        functions=("read", "inc"),
        repeats=(),
        evidence=any_ok("read", "inc"),
        checker=MonotonicChecker,
        anomalies=("nonmonotonic-read", "nonmonotonic-timestamp"),
    ),
    "queue": Judged(
        about="what was put in comes out, as often and in the order that is promised",
        value_type=ELEMENTS,
        functions=("enqueue", "dequeue", "ack", "drain"),
        repeats=(members("enqueue", "ack"),),
        evidence=any_ok("dequeue", "drain"),
        checker=QueueChecker,
        anomalies=("aborted-read", "duplicated", "lost", "out-of-order", "redelivered-after-ack", "unexpected"),
        options={"delivery": Delivery, "order": Order},
    ),
    "rw-register": Judged(
        about="transactions on registers are isolated as a consistency model says",
        value_type=TRANSACTION,
        functions=("txn",),
        repeats=(TRANSACTIONS,),
        evidence=(reading("txn", "r"),),
        checker=RwRegister,
        anomalies=(*OF_TRANSACTIONS, *_no_order(NO_ORDER_OF_REGISTERS), "cyclic-versions"),
        options={"model": Model, "assume": SomeOf(Assumption)},
    ),
    "set": Judged(
        about="what was added is there, for whoever reads later",
        value_type=ELEMENTS,
        functions=("add", "read"),
        repeats=(members("add"),),
        evidence=any_ok("read"),
        checker=SetChecker,
        anomalies=("aborted-read", "duplicated", "lost", "stale", "unexpected"),
        options={"reads": Reads},
    ),
    "unique-ids": Judged(
        about="no id is given out twice",
        value_type=ELEMENTS,
        functions=("generate",),
        repeats=(),
        evidence=(shows_a_value("generate", at_least=2),),
        checker=UniqueIdsChecker,
        anomalies=("duplicated",),
    ),
}
"""By name, in order."""


def checker_for(workload: str, options: Options) -> Checker:
    """Raises ValueError if there is no such workload, no such option, or an option's value means nothing."""
    if workload not in WORKLOADS:
        raise ValueError(f"no checker for workload {workload!r}; there are: {', '.join(WORKLOADS)}")
    judged = WORKLOADS[workload]
    unknown = sorted(set(options) - set(judged.options))
    if unknown:
        known = ", ".join(judged.options) or "none"
        raise ValueError(f"workload {workload} has no option {unknown[0]!r}; there are: {known}")
    return judged.checker(**{name: _told(name, judged.options[name], text) for name, text in options.items()})


def _told(name: str, kind: Kind, text: str) -> Enum | int | frozenset[Enum]:
    """Raises ValueError."""
    try:
        if isinstance(kind, SomeOf):
            return frozenset(kind.kind(word) for word in text.split(","))
        told = kind(text)
        if isinstance(told, Enum) or abs(told) < 1 << 63:
            return told
    except ValueError:
        pass
    raise ValueError(f"option {name} must be {allowed(kind)}, it is {text!r}")


def allowed(kind: Kind) -> str:
    """What an option may be, in words."""
    if isinstance(kind, SomeOf):
        return f"some of {', '.join(member.value for member in kind.kind)}, with commas between them"
    if issubclass(kind, Enum):
        return f"one of {', '.join(member.value for member in kind)}"
    return "a whole number of 64 bits"
