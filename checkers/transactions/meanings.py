"""The meanings of the anomalies of transactions."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.transactions.elle.graph.cycles import FAMILIES, VARIANTS
from checkers.transactions.model.lattice import ConsistencyModel
from harness.record.meaning import Meaning

NO_ORDER = "not-"
"""The name of an anomaly begins with this, followed by a model, if no order of transactions explains the history in
it."""

_FAMILIES: Mapping[str, Meaning] = {
    "G0": Meaning(
        says="Writes are interleaved: a cycle of transactions, each of which wrote over what the one before had "
        "written.",
        usually="Writes of a transaction take effect one by one, without locks or one order of commits.",
    ),
    "G1c": Meaning(
        says="Information flowed in a cycle: each transaction saw, or wrote over, what the one before had written.",
        usually="Transactions read what others have not yet committed, or replicas apply commits in different orders.",
    ),
    "G-single-item": Meaning(
        says="A cycle of transactions, one of which did not see what the next one wrote.",
        usually="A read was not of the same snapshot as the rest of its transaction, or an update was based on a "
        "read that was no longer true.",
    ),
    "G-nonadjacent-item": Meaning(
        says="A cycle of transactions, several of which did not see what the next one wrote, but no two such in a row.",
        usually="Snapshots of different transactions see commits in different orders.",
    ),
    "G2-item": Meaning(
        says="A cycle of transactions, two of which in a row did not see what the next one wrote: write skew.",
        usually="Transactions that only read what others write are not checked for conflicts, as under snapshot "
        "isolation.",
    ),
}
_CLOSED_BY: Mapping[str, Meaning] = {
    "": Meaning(says="", usually=""),
    "-process": Meaning(
        says=" The cycle closes through the order of what one process did.",
        usually=" That needs a session's order to break it: often the session moved to a replica that lags behind.",
    ),
    "-realtime": Meaning(
        says=" The cycle closes through real time: something had ended before something else began.",
        usually=" That needs real time to break it: often a stale read, from a replica or a deposed leader.",
    ),
}
"""The suffixes of cycles that need more than reads and writes."""


def _cycle(family: str, variant: str) -> Meaning:
    plain, closed = _FAMILIES[family], _CLOSED_BY[variant]
    return Meaning(says=plain.says + closed.says, usually=plain.usually + closed.usually)


OF_CYCLES: Mapping[str, Meaning] = {
    family + variant: _cycle(family, variant) for family in FAMILIES for variant in VARIANTS
}
OF_ORDERS: Mapping[str, Meaning] = {
    f"{NO_ORDER}{model.value}": Meaning(
        says=f"No order of the transactions explains what they read as {model.value} demands.",
        usually="The system promises a weaker model under this configuration, or reads come from replicas that lag.",
    )
    for model in ConsistencyModel
}
_OF_TRANSACTIONS: Mapping[str, Meaning] = {
    "G1a": Meaning(
        says="Something was read that a failed transaction had written.",
        usually="The transaction was reported as aborted after it had been applied, or its writes were shown before it "
        "ended.",
    ),
    "G1b": Meaning(
        says="A state was read that its transaction went on to change.",
        usually="Writes are shown before their transaction has committed.",
    ),
    "future-read": Meaning(
        says="A transaction read what it wrote only later.",
        usually="The reads of a transaction are answered after its writes were applied.",
    ),
    "garbage-read": Meaning(
        says="Something was read that nobody had tried to write.",
        usually="Corrupt or misdirected data, or values of an earlier run left behind.",
    ),
    "internal": Meaning(
        says="A transaction's read contradicts its own earlier reads and writes.",
        usually="A transaction is not served from one snapshot together with its own writes.",
    ),
    "lost-update": Meaning(
        says="Several transactions read the same version and wrote over it, none seeing another's write.",
        usually="A value is read and written back without a check that it is still the same.",
    ),
}
_OF_LISTS: Mapping[str, Meaning] = {
    "dirty-update": Meaning(
        says="A transaction wrote behind what a failed one had written.",
        usually="Writes of a transaction that aborted were not taken back before others built on them.",
    ),
    "duplicate-elements": Meaning(
        says="A read shows an element twice that was appended once.",
        usually="A request was applied twice, often by a retry.",
    ),
    "incompatible-order": Meaning(
        says="Two reads of a list contradict each other about the order of its elements.",
        usually="Two leaders took appends at once, or acknowledged elements were cut and others put in their place.",
    ),
}
_OF_REGISTERS: Mapping[str, Meaning] = {
    "cyclic-versions": Meaning(
        says="By what was assumed, versions of a register precede each other in a cycle.",
        usually="The system does not promise what was assumed, or a read was answered by a replica that lags behind.",
    ),
}
OF_LISTS: Mapping[str, Meaning] = {**OF_CYCLES, **OF_ORDERS, **_OF_TRANSACTIONS, **_OF_LISTS}
OF_REGISTERS: Mapping[str, Meaning] = {**OF_CYCLES, **OF_ORDERS, **_OF_TRANSACTIONS, **_OF_REGISTERS}
