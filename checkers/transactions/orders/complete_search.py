"""An order of all events, or of all versions, or a refutation: what the solver finds if it forgets nothing.

It begins with all edges that are forced in every order (`saturation`), and does without windows of time. So a nogood
without literals refutes the history. If there is no more room for nogoods, it begins again with more room, from another
order. Bounds count events that were looked at. A decision that is given up says what is wrong in the last order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from checkers import search_budget
from checkers.api.verdict import EXAMPLES, Verdict
from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Int32, Int64, run_starts
from checkers.transactions.evidence.proof import Bound, Decision, Established
from checkers.transactions.history.committed import INITIAL, NEVER
from checkers.transactions.orders.bounds import Bounds
from checkers.transactions.orders.events import Accesses, Edges, Events
from checkers.transactions.orders.nogoods import NOGOODS
from checkers.transactions.orders.proof_builder import contradiction
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.refutation import refutation
from checkers.transactions.orders.replay import replayed
from checkers.transactions.orders.saturation import Saturated
from checkers.transactions.orders.solver import (
    CHOICES,
    FOUND,
    GIVEN_UP,
    NO_ROOM,
    REFUTED,
    Search,
    put_in_order,
    put_versions_in_order,
    search,
    violations,
    ways_to_readers,
)
from checkers.transactions.orders.strong_components import strong_components
from checkers.transactions.orders.time_bounds import Spans

FIRST_STEPS = 8
"""How many events are looked at, for each that there is, before progress is reported for the first time. From then on
it is twice as many each time."""
MOST_STEPS = 1 << 24
"""The most events that are looked at between two reports of progress. They take some seconds."""
NOGOODS_AN_EVENT = 4
"""The room for literals of nogoods at first, for each event. A search that has filled it begins again with four times
as much."""
MOST_NOGOODS = 1 << 26
"""A search that has filled the room for more literals than this is given up."""


@dataclass(frozen=True, kw_only=True)
class CompleteSearch:
    found: Saturated
    orders: OrderKind
    bounds: Bounds

    def decision(self) -> Decision:
        if self.found.cyclic:
            return contradiction(self.found)
        events = self.found.events
        for restart in count():
            begun = self._begun(restart)
            ended = self._searched(begun)
            if ended != NO_ROOM or len(begun.nogoods.literals) > MOST_NOGOODS:
                break
        if ended == REFUTED:
            return Decision(verdict=Verdict.INVALID, proof=refutation(self.found, begun, self.orders))
        if ended != FOUND:
            return self._given_up(begun)
        order = begun.order.event_at
        if self.orders is OrderKind.TOTAL:
            return replayed(events, order)
        return Decision(verdict=Verdict.VALID, order=events.without_moments(order))

    def _begun(self, restart: int) -> Search:
        """From the order in which transactions had certainly happened, and every other time from that in which they
        were invoked: either may be near to an order that explains all."""
        events = self.found.events
        moments = np.full(events.size - events.moments_from, -1)
        moment = events.committed.start if restart % 2 else events.settled
        urgency = np.concatenate((np.repeat(moment, events.width), moments))
        turn = np.empty(events.size, dtype=np.int64)
        turn[np.argsort(urgency, kind="stable")] = np.arange(events.size)
        return begun_search(events, self.found.edges, self.orders, turn, restart)

    def _searched(self, begun: Search) -> int:
        """Reports progress between pieces. The order that it begins with is looked at even if the time is up."""
        if self._is_right(begun):
            return FOUND
        put = put_in_order if self.orders is OrderKind.TOTAL else put_versions_in_order
        ended, steps, left = GIVEN_UP, FIRST_STEPS * len(begun.order.place), self.bounds.complete_steps
        with search_budget.stopping() as stop:
            while ended == GIVEN_UP and left > 0 and not search_budget.is_over():
                search_budget.say(partial(_words, begun))
                ended = put(begun, min(steps, left), stop)
                left -= steps
                steps = min(2 * steps, MOST_STEPS)
        return ended

    def _is_right(self, begun: Search) -> bool:
        if self.orders is OrderKind.TOTAL:
            return not len(violations(begun, 0, len(begun.order.place)))
        ends, _, is_all = ways_to_readers(begun, self.bounds.complete_steps)
        return is_all and not len(ends)

    def _given_up(self, begun: Search) -> Decision:
        events, order = self.found.events, begun.order.event_at
        if self.orders is OrderKind.TOTAL:
            source, target = implied(events, order)
            edges = self.found.edges
            wrong = on_cycles(events, np.concatenate((edges.source, source)), np.concatenate((edges.target, target)))
            is_all = True
        else:
            wrong, is_all = seeing_too_much(begun)
        transactions = np.unique(np.concatenate(wrong)) if wrong else np.zeros(0, dtype=np.int32)
        return Decision(
            verdict=Verdict.UNKNOWN,
            open=tuple(tuple(some[:EXAMPLES].tolist()) for some in wrong[:EXAMPLES]),
            established=Established(
                bound=Bound.TIME if search_budget.is_over() else Bound.STEPS,
                components=len(wrong),
                transactions=len(transactions),
                choices=int(begun.progress[CHOICES]),
                conflicts=int(begun.nogoods.used[NOGOODS]),
                prefix=int(transactions[0]) - 1 if len(transactions) and is_all else 0,
            ),
        )


def _words(begun: Search) -> str:
    return (
        f"{begun.progress[CHOICES]} pairs of writers to be put in order,"
        f" {begun.nogoods.used[NOGOODS]} combinations of their orders are impossible"
    )


def begun_search(events: Events, forced: Edges, orders: OrderKind, turn: Int64, restart: int = 0) -> Search:
    """Events are in the order of their turns, as far as the forced edges allow that, which must make no cycle."""
    begun = search(
        events.accesses,
        events.width,
        (forced.source, forced.target),
        turn,
        _without_windows(events.accesses),
        orders,
        NOGOODS_AN_EVENT * events.size << 2 * restart,
        scale=1 << restart,
        forgets=False,
    )
    assert begun is not None, "what is forced makes a cycle"
    return begun


def _without_windows(accesses: Accesses) -> Spans:
    """Initial versions come first; no other version is bounded."""
    written = len(accesses.version_writer)
    latest = np.concatenate((np.full(written, NEVER), np.full(accesses.keys, -1)))
    earliest = np.full(written + accesses.keys, -1, dtype=np.int64)
    return Spans(begun=latest, done=latest, written=earliest, read=earliest)


def seeing_too_much(begun: Search) -> tuple[list[Int32], bool]:
    """For each reader that sees the writer of the version after the one it read, the writers on the way between them,
    ascending; and whether all readers were looked at."""
    ends, pairs, is_all = ways_to_readers(begun, NEVER)
    writer = np.append(begun.accesses.version_writer, np.int32(INITIAL))
    on_ways = writer[np.minimum(pairs, len(writer) - 1)]
    return [np.unique(way[way != INITIAL]) for way in np.split(on_ways, ends)[:-1]], is_all


def implied(events: Events, order: Int32) -> tuple[Int32, Int32]:
    """Edges (sources, targets) for the versions in the order in which they come here."""
    accesses = events.accesses
    place = np.empty(events.size, dtype=np.int64)
    place[order] = np.arange(len(order))
    key, writer = accesses.write_key, accesses.version_writer
    versions = np.lexsort((place[events.commit(writer)], key))
    before, after = versions[:-1], versions[1:]
    same = key[before] == key[after]
    before, after = before[same], after[same]
    # Of each version the one that comes next, of initial ones the first; -1 behind the last.
    following = np.full(len(key) + accesses.keys, -1, dtype=np.int64)
    following[before] = after
    firsts = versions[np.searchsorted(key[versions], np.unique(key))]
    following[len(key) + key[firsts]] = firsts
    overwriter = np.where(following >= 0, np.append(writer, -1)[following], -1)[accesses.read_version]
    missed = (overwriter >= 0) & (overwriter != accesses.reader)
    sources = np.concatenate((events.commit(writer[before]), events.begin(accesses.reader[missed])))
    targets = np.concatenate((events.begin(writer[after]), events.commit(overwriter[missed].astype(np.int32))))
    return sources, targets


def on_cycles(events: Events, source: Int32, target: Int32) -> list[Int32]:
    """Transactions of each strongly connected component with more than one of them, ascending."""
    first, targets = followers(source, target, events.size)
    number = strong_components(first, targets)[: events.moments_from]
    shared = np.flatnonzero(np.bincount(number)[number] > 1)
    number, transaction = number[shared], shared // events.width
    order = np.lexsort((transaction, number))
    order = order[run_starts(number[order], transaction[order])]
    number, transaction = number[order], transaction[order]
    parts = np.split(transaction.astype(np.int32), np.flatnonzero(np.diff(number)) + 1)
    return sorted((part for part in parts if len(part) > 1), key=lambda part: int(part[0]))
