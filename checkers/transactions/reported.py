"""The names of the anomalies that the checkers of transactions report."""

from __future__ import annotations

from collections.abc import Iterable

from checkers.transactions.anomalies import NO_ORDER
from checkers.transactions.checker import SERIAL
from checkers.transactions.elle.graph.cycles import NAMES as CYCLES
from checkers.transactions.model.lattice import Model

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


OF_LISTS = (
    *OF_TRANSACTIONS,
    *_no_order(NO_ORDER_OF_LISTS),
    "dirty-update",
    "duplicate-elements",
    "incompatible-order",
)
OF_REGISTERS = (*OF_TRANSACTIONS, *_no_order(NO_ORDER_OF_REGISTERS), "cyclic-versions")
