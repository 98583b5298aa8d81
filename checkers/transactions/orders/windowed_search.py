"""An order that the store may have followed, found where time settles most of it.

Each event gets a window of time, assuming that the store went by real time (`time_bounds`), and events begin in the
order of their deadlines. The solver forgets what it learned if there is no room for more. So it finds orders of
histories that have many, as those of real stores do, and proves nothing if it finds none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers import search_budget
from checkers.kernels.columns import NO_INDEX, Int32
from checkers.transactions.evidence.proof import Decision
from checkers.transactions.orders.events import Accesses, Events, ExternalOrder, moments
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.replay import replayed
from checkers.transactions.orders.solver import FOUND, REFUTED, Search, put_in_order, search
from checkers.transactions.orders.time_bounds import Spans, Windows, windows

FEW_STEPS = 40
"""How many events are looked at, for each that there is, if the clocks that come next are cheap. It is enough if few
sessions are busy at once."""
NOGOODS_AN_EVENT = 64
"""The room for literals of nogoods, for each event."""
MOST_NOGOODS = 1 << 24
"""The most room for literals of nogoods, unless two for each event are more."""


@dataclass(frozen=True, kw_only=True)
class OrderSearch:
    """The search for an order of one history."""

    events: Events
    behind: int
    """How far before its invocation a read may look, in history indices."""
    search: Search

    @classmethod
    def of(cls, events: Events, least: int = 0) -> OrderSearch | None:
        """None if no store that goes by real time can have left the history, or time was up before that was known.

        If the model does not keep real time, reads may look into the past: at least as far as `least`, and no further
        than the history demands."""
        for behind in (0,) if events.kept is ExternalOrder.REALTIME else _delays(len(events.committed)):
            if search_budget.is_over():
                break
            narrowed = windows(events, behind=behind) if behind >= least else None
            if narrowed is not None:
                search = _search(events, *narrowed)
                return None if search is None else cls(events=events, behind=behind, search=search)
        return None

    def decision(self, steps_an_event: int) -> Decision | None:
        """VALID with an order that the store may have followed, or None if none was found in so many steps."""
        with search_budget.stopping() as stop:
            ended = put_in_order(self.search, steps_an_event * len(self.search.order.place), stop)
        events = self.events
        if ended == REFUTED and events.kept is not ExternalOrder.REALTIME:
            # Windows that did not contradict each other were too narrow all the same.
            return rearranged(events, steps_an_event, self.behind + 1)
        if ended != FOUND:
            return None
        return replayed(events, self.search.order.event_at)


def rearranged(events: Events, steps_an_event: int, least: int = 0) -> Decision | None:
    """VALID with an order that the store may have followed, or None if there can be none or none was found; `least` as
    in `OrderSearch.of`."""
    rearrangement = OrderSearch.of(events, least)
    return rearrangement.decision(steps_an_event) if rearrangement else None


def _delays(transactions: int) -> list[int]:
    """0, then 16 and each time twice as much, until it covers the whole history; in history indices."""
    return [0, *(1 << power for power in range(4, (4 * transactions).bit_length()))]


def _search(events: Events, of_events: Windows, forced: Int32) -> Search | None:
    """None if what the windows force makes a cycle."""
    size = len(of_events.high)
    inside = (events.base.source < size) & (events.base.target < size)
    earlier, later, count = _moments(of_events, events.width)
    source = np.concatenate((events.base.source[inside], forced[0], earlier))
    target = np.concatenate((events.base.target[inside], forced[1], later))
    # A moment comes as soon as it can: all that may begin after it waits for it.
    urgency = np.concatenate((of_events.high, np.full(count, -1)))
    turn = np.empty(size + count, dtype=np.int64)
    turn[np.argsort(urgency, kind="stable")] = np.arange(size + count)
    return search(
        events.accesses,
        events.width,
        (source, target),
        turn,
        _spans(events.accesses, of_events, events.width),
        OrderKind.TOTAL,
        max(min(NOGOODS_AN_EVENT * len(turn), MOST_NOGOODS), 2 * len(turn)),
        forgets=True,
    )


def _moments(of_events: Windows, width: int) -> tuple[Int32, Int32, int]:
    """Edges (sources, targets) that keep all events in their windows, and how many moments they lead through."""
    low, high = (side[width - 1 :] for side in of_events)
    by_low = np.argsort(low, kind="stable")
    source, target, count = moments(low[by_low], high[by_low], np.argsort(high[by_low], kind="stable"), 1)
    event_of = np.concatenate((by_low, np.arange(len(low), len(low) + count))).astype(np.int32) + np.int32(width - 1)
    return event_of[source], event_of[target], count


def _spans(accesses: Accesses, of_events: Windows, width: int) -> Spans:
    low, high = of_events
    begin = accesses.version_writer.astype(np.int64) * width
    commit = begin + width - 1
    read = np.full(len(begin) + accesses.keys, NO_INDEX, dtype=np.int64)
    np.maximum.at(read, accesses.read_version, low[accesses.reader.astype(np.int64) * width])
    initial = np.full(accesses.keys, NO_INDEX, dtype=np.int64)
    return Spans(
        begun=np.concatenate((high[begin], initial)),
        done=np.concatenate((high[commit], initial)),
        written=np.concatenate((low[commit], initial)),
        read=read,
    )
