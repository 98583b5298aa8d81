"""Cycles of dependencies between transactions on registers, and cycles of versions, which contradict a model if the
assumptions hold.

The history shows each step by itself. `ww` and `rw` rest on an order of two versions, which `assumptions.py` judges:

    ww        source left the first version of the key, target the second one
    wr        target read what source left
    rw        source read the first version, target left the second one
    process   source ended before target, of the same process, began
    realtime  source ended before target began

In an order that explains the history as a model demands, all steps lead forwards that the model forbids in a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from checkers.transactions.verify.assumptions import Assumptions, Version
from checkers.transactions.verify.demands import Demand, ExternalOrder, Family, Seen
from checkers.transactions.verify.history import Refuted, TransactionHistory
from checkers.transactions.verify.observations import Observations

T = TypeVar("T")

ASSUMPTIONS = frozenset({"wfr-keys", "sequential-keys", "linearizable-keys"})

CYCLIC_VERSIONS = "cyclic-versions"

WW, WR, RW, PROCESS, REALTIME = "ww", "wr", "rw", "process", "realtime"


def are_assumptions(named: Any) -> bool:
    """Whether it is a list of assumptions, which may be empty."""
    return isinstance(named, list) and all(isinstance(one, str) and one in ASSUMPTIONS for one in named)


def require_cycle(history: TransactionHistory, demand: Demand, assumed: Any, name: Any, steps: Any) -> None:
    """Raises Refuted unless the steps are a cycle of this name, which the model forbids if what is assumed holds."""
    if not are_assumptions(assumed):
        raise Refuted(f"{assumed!r} are no assumptions")
    if history.lists:
        raise Refuted("reads of lists show the order of versions, and nothing is assumed of it")
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise Refuted("there are no steps")
    history.require_unique_writes()
    assumptions = Assumptions(observations=Observations(history=history), assumed=frozenset(assumed))
    if name == CYCLIC_VERSIONS:
        _require_cycle_of_versions(assumptions, steps)
        return
    judged = list(_each(steps, partial(require_step, assumptions)))
    _require_closed([(source, target) for _, source, target in judged])
    kinds = [kind for kind, _, _ in judged]
    if name != name_of(kinds):
        raise Refuted(f"the cycle is {name_of(kinds)}, not {name!r}")
    if not forbids(demand, kinds):
        raise Refuted(f"this model does not forbid {name}")


def name_of(kinds: Sequence[str]) -> str:
    """The name of a cycle with such steps, after Adya and Elle."""
    family = "G1c" if WR in kinds else "G0"
    if RW in kinds:
        family = "G2-item" if _has_adjacent(kinds) else "G-nonadjacent-item" if kinds.count(RW) > 1 else "G-single-item"
    return family + ("-realtime" if REALTIME in kinds else "-process" if PROCESS in kinds else "")


def _has_adjacent(kinds: Sequence[str]) -> bool:
    """Whether two rw follow each other; the last step is followed by the first."""
    return len(kinds) > 1 and (RW, RW) in pairwise([*kinds, kinds[0]])


def forbids(demand: Demand, kinds: Sequence[str]) -> bool:
    """Whether no order that explains a history as the model demands has a cycle with such steps.

    In a serial order each step leads to a later transaction. With snapshots the source commits before the target
    begins, except that for rw it only begins before the target commits; so only two rw in a row can lead back. If each
    transaction may see another order, a transaction that leads to a reader without rw has been seen by it, and so wrote
    no version behind the one that it read. Weaker models order what was written and read, and say of less or of nothing
    that it must have been seen.
    """
    if REALTIME in kinds and demand.keeps is not ExternalOrder.REALTIME:
        return False
    if PROCESS in kinds and demand.keeps is ExternalOrder.NOTHING:
        return False
    if demand.family is Family.SERIAL:
        return True
    if demand.family is Family.SNAPSHOT:
        return not _has_adjacent(kinds)
    if demand.family is Family.WRITES:
        return WR not in kinds and RW not in kinds
    return kinds.count(RW) <= (demand.seen is Seen.VERSIONS)


def require_step(assumptions: Assumptions, step: Mapping[str, Any]) -> tuple[str, int, int]:
    """(kind, source, target) of a step of a cycle of transactions. Raises Refuted unless it is shown."""
    kind, history = step.get("kind"), assumptions.history
    rule = _RULES.get(kind) if isinstance(kind, str) else None
    if rule is None:
        raise Refuted(f"there are no steps of kind {kind!r}")
    source, target = history.named(step.get("source")), history.named(step.get("target"))
    for transaction in (source, target):
        assumptions.observations.require_committed(transaction)
    if source == target:
        raise Refuted("it leads nowhere")
    rule(assumptions, source, target, step)
    return str(kind), source, target


def _require_cycle_of_versions(assumptions: Assumptions, steps: Sequence[Mapping[str, Any]]) -> None:
    ordered = list(_each(steps, partial(_ordered, assumptions)))
    _require_closed([((key, before), (key, after)) for key, before, after in ordered])


def _each(steps: Sequence[Mapping[str, Any]], judge: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
    for number, step in enumerate(steps):
        try:
            yield judge(step)
        except Refuted as reason:
            raise Refuted(f"step {number}: {reason}") from None


def _require_closed(ends: Sequence[tuple[Any, Any]]) -> None:
    for (_, target), (source, _) in zip(ends, [*ends[1:], *ends[:1]], strict=True):
        if target != source:
            raise Refuted("the steps are no cycle")


def _ordered(assumptions: Assumptions, step: Mapping[str, Any]) -> tuple[int, Version, Version]:
    """(key, a version of it, another one), of which the first certainly precedes the second."""
    key, versions = assumptions.history.key_named(step.get("key")), step.get("versions")
    if not isinstance(versions, list) or len(versions) != 2:
        raise Refuted("it does not name two versions")
    if not all(version is None or type(version) is int for version in versions):
        raise Refuted(f"{versions} are no versions of a register")
    before, after = versions
    assumptions.require_precedes(key, before, after, step.get("because"), step.get("transactions"))
    return key, before, after


def _ww(assumptions: Assumptions, source: int, target: int, step: Mapping[str, Any]) -> None:
    key, before, after = _ordered(assumptions, step)
    _require_left(assumptions.observations, source, key, before)
    _require_left(assumptions.observations, target, key, after)


def _wr(assumptions: Assumptions, source: int, target: int, step: Mapping[str, Any]) -> None:
    assumptions.observations.require_read(target, assumptions.history.key_named(step.get("key")), source)


def _rw(assumptions: Assumptions, source: int, target: int, step: Mapping[str, Any]) -> None:
    key, before, after = _ordered(assumptions, step)
    if not assumptions.observations.has_read(source, key, before):
        raise Refuted(f"{assumptions.history.name(source)} did not read that")
    _require_left(assumptions.observations, target, key, after)


def _require_left(observations: Observations, transaction: int, key: int, version: Version) -> None:
    if version is None or observations.written(transaction, key) != version:
        raise Refuted(f"{observations.history.name(transaction)} did not leave {version} there")


def _process(assumptions: Assumptions, source: int, target: int, step: Mapping[str, Any]) -> None:
    if assumptions.history.process[source] != assumptions.history.process[target]:
        raise Refuted("not of one process")
    assumptions.observations.require_ended_before(source, target)


def _realtime(assumptions: Assumptions, source: int, target: int, step: Mapping[str, Any]) -> None:
    assumptions.observations.require_ended_before(source, target)


_RULES: Mapping[str, Callable[[Assumptions, int, int, Mapping[str, Any]], None]] = {
    WW: _ww,
    WR: _wr,
    RW: _rw,
    PROCESS: _process,
    REALTIME: _realtime,
}
