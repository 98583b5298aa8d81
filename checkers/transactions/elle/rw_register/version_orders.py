"""Which versions of a register certainly follow which, by what is assumed.

Reads of a register do not show what was there before, so that without any assumption the initial version comes first
and that is all. What a system is known to promise of each single key
shows more. A transaction touches the version that
its first external read of the key shows, and the one that it installs; of versions a and b:

  wfr-keys           a transaction that reads a and writes b: a < b
  sequential-keys    T came before U in a process, and T touches a, U touches b: a ≤ b
  linearizable-keys  T ended before U began, and T touches a, U touches b: a ≤ b
  a given order      T precedes U in it, and T installs a, U installs b: a < b

A value that nobody wrote may have been there from the beginning; such versions count by wfr-keys alone. An indefinite
transaction precedes nothing; it may follow. Versions that precede each other are an anomaly (`cyclic-versions`), after
which nothing is inferred of the key but that the initial version comes first.

What follows by way of a third version is left out, as far as that costs little: never by way of a process, often by
way of several. What is inferred is sound if the assumptions are; it is not all that follows from them.

Source: Kingsbury, Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations" (VLDB 2020), 4.2.3; the
orders of transactions that it makes version orders of are per key here, so that nothing is searched through others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import NO_INDEX, OK
from checkers.transactions.elle.rw_register.precedences import Assumed, Assumption, OrderedBy, Precedences, Versions
from checkers.transactions.elle.rw_register.realtime import nearest_in_realtime, no_spread, spread_of
from checkers.transactions.elle.rw_register.resolution import Registers
from checkers.transactions.elle.rw_register.transaction_version_order import (
    in_given_order,
    in_processes,
    touches_of,
    writes_follow_reads,
)
from checkers.transactions.elle.rw_register.version_cycles import no_key, version_cycles


@dataclass(frozen=True, kw_only=True)
class InferredOrders:
    versions: Versions
    orders: Precedences
    """Acyclic, and whatever is after was written."""
    cycles: tuple[tuple[int, Precedences], ...]
    """(key, a cycle of its versions) for each key with `cyclic-versions`."""


def inferred_orders(registers: Registers, assumed: Assumed) -> InferredOrders:
    versions = Versions.of(registers)
    touches = touches_of(registers, versions)
    found = [writes_follow_reads(versions, touches)] if Assumption.WFR_KEYS in assumed.assumptions else []
    unwritten = registers.writer[touches.read] == NO_INDEX
    touches = touches._replace(read=np.where(unwritten, -1, touches.read))
    is_ok = registers.type[touches.row] == OK
    realtime = Assumption.LINEARIZABLE_KEYS in assumed.assumptions
    # What a process did before has ended before.
    if Assumption.SEQUENTIAL_KEYS in assumed.assumptions and not realtime:
        found.append(in_processes(registers, versions, touches, is_ok, assumed.assumptions))
    if assumed.order:
        found.append(in_given_order(registers, versions, touches, is_ok, assumed.order))
    spread = spread_of(registers, versions, touches, is_ok) if realtime else no_spread(len(versions))
    links = Precedences.distinct(found, len(versions))
    cyclic, cycles = version_cycles(versions, links, spread) if found or realtime else (no_key(versions), ())
    if realtime:
        links = Precedences.distinct([links, nearest_in_realtime(versions, spread, cyclic)], len(versions))
    links = links.part(~cyclic[versions.key[links.before]])
    return InferredOrders(versions=versions, orders=_with_initial(versions, links), cycles=cycles)


def _with_initial(versions: Versions, links: Precedences) -> Precedences:
    """Besides, initial versions precede what nothing else does."""
    first = versions.row >= 0
    # What nobody wrote leads nowhere from the initial version.
    initial = np.zeros(len(versions), dtype=np.bool_)
    initial[versions.first[:-1]] = True
    leading = (versions.row >= 0) | initial
    first[links.after[leading[links.before]]] = False
    after = np.flatnonzero(first)
    nothing = np.full(len(after), -1, dtype=np.int64)
    from_initial = Precedences.by(OrderedBy.INITIAL, versions.first[versions.key[after]], after, nothing, nothing)
    return Precedences.distinct([links, from_initial], len(versions))
