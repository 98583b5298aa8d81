"""The order of a register's versions that certainly holds if some promises of the system are assumed.

Reads of a register do not show what was there before. So without any assumption it is only known that the initial
version comes first. What the system promises for each single key shows more. A transaction touches the version that its
first external read of the key shows, and the one that it installs. For versions a and b:

  wfr-keys           a transaction reads a and writes b: a < b
  sequential-keys    T came before U in a process, and T touches a, U touches b: a ≤ b
  linearizable-keys  T ended before U began, and T touches a, U touches b: a ≤ b
  a given order      T precedes U in it, and T installs a, U installs b: a < b

A value that was never written may have been there from the beginning; such versions are ordered by wfr-keys alone. An
indefinite transaction precedes nothing, but it may follow others. Versions that precede each other are an anomaly
(`cyclic-versions`); then only the initial version's place at the beginning is inferred for that key.

An order that follows by way of a third version is left out if that costs little: it never appears where all three are
of one process, but may where they are of several. What is inferred is sound if the assumptions are, but not complete.

Source: Kingsbury, Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations" (VLDB 2020), 4.2.3. Elle
infers version orders from orders of all transactions; here these are orders of the transactions on each key, so that no
search passes through other transactions.
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
    """The orders of versions. They are acyclic, and each version in `after` was written."""
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
    # A process's earlier transactions ended before its later ones began, so realtime includes this order.
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
    """The same links, and initial versions before each version that nothing else precedes."""
    first = versions.row >= 0
    # No edge leads from the initial version to one that was never written.
    initial = np.zeros(len(versions), dtype=np.bool_)
    initial[versions.first[:-1]] = True
    leading = (versions.row >= 0) | initial
    first[links.after[leading[links.before]]] = False
    after = np.flatnonzero(first)
    nothing = np.full(len(after), -1, dtype=np.int64)
    from_initial = Precedences.by(OrderedBy.INITIAL, versions.first[versions.key[after]], after, nothing, nothing)
    return Precedences.distinct([links, from_initial], len(versions))
