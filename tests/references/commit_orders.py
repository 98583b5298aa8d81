"""What each consistency model allows, by trying everything: the slow, obvious reference for all deciders.

Takes `Committed`: what crosses transactions. Sources: Biswas, Enea (OOPSLA 2019) for the axioms over commit orders,
Cerone, Gotsman, Yang (CONCUR 2015) for parallel snapshot isolation, Adya (1999) for PL-2 and its kin, Crooks et al.
(PODC 2017) for snapshots as prefixes of the commit order. What each weak level lets a transaction see, and which order
it keeps, is the table in `checkers.transactions.evidence.proof`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

from checkers.transactions.history.committed import INITIAL, NEVER, WRITES, Committed

Pair = tuple[int, int]
Pairs = frozenset[Pair]
NOTHING: Pairs = frozenset()


@dataclass(frozen=True)
class History:
    """The same as sets of pairs."""

    rows: Committed

    @property
    def nodes(self) -> range:
        return range(len(self.rows))

    @cached_property
    def operations(self) -> list[list[tuple[int, int]]]:
        """Of each transaction (key, writer), in program order."""
        first = self.rows.first.tolist()
        pairs = list(zip(self.rows.key.tolist(), self.rows.writer.tolist(), strict=True))
        return [pairs[first[t] : first[t + 1]] for t in self.nodes]

    @cached_property
    def reads(self) -> list[tuple[int, int, int]]:
        """(reader, key, writer)."""
        return [(r, k, w) for r in self.nodes for k, w in self.operations[r] if w != WRITES]

    @cached_property
    def keys(self) -> list[int]:
        return sorted(set(self.rows.key.tolist()))

    def writes(self, t: int, key: int) -> bool:
        return t == INITIAL or (key, WRITES) in self.operations[t]

    def writers(self, key: int) -> list[int]:
        return [t for t in self.nodes if self.writes(t, key)]

    @property
    def read(self) -> Pairs:
        return frozenset((w, r) for r, _, w in self.reads if w != r)

    @property
    def initial(self) -> Pairs:
        return frozenset((INITIAL, t) for t in self.nodes if t != INITIAL)

    @property
    def version_pairs(self) -> Pairs:
        return frozenset((u, v) for _, u, v in self.rows.version_edges.tolist())

    @property
    def session(self) -> Pairs:
        start, end, session = self.rows.start.tolist(), self.rows.end.tolist(), self.rows.session.tolist()
        return frozenset(
            (t, u)
            for t in self.nodes
            for u in self.nodes
            if t != INITIAL and session[t] == session[u] and end[t] != NEVER and start[t] < start[u]
        )

    @property
    def realtime(self) -> Pairs:
        start, end = self.rows.start.tolist(), self.rows.end.tolist()
        return frozenset((t, u) for t in self.nodes for u in self.nodes if t != INITIAL and end[t] < start[u])


def then(first: Pairs, second: Pairs) -> Pairs:
    after: dict[int, list[int]] = {}
    for b, c in second:
        after.setdefault(b, []).append(c)
    return frozenset((a, c) for a, b in first for c in after.get(b, ()))


def paths(pairs: Pairs) -> Pairs:
    """Transitive closure."""
    while not (longer := then(pairs, pairs)) <= pairs:
        pairs |= longer
    return pairs


def orders(nodes: Sequence[int], before: Pairs) -> Iterator[tuple[int, ...]]:
    """All total orders that keep `before`."""
    if not nodes:
        yield ()
    for t in nodes:
        if not any((u, t) in before for u in nodes):
            for rest in orders([u for u in nodes if u != t], before):
                yield (t, *rest)


Order = Callable[[History], Pairs]


def no_sessions(history: History) -> Pairs:
    return NOTHING


def sessions(history: History) -> Pairs:
    return history.session


def reads(history: History) -> Pairs:
    return history.read


def realtime(history: History) -> Pairs:
    return history.realtime


def base(history: History, extra: Order) -> Pairs:
    return history.initial | history.read | history.version_pairs | extra(history)


def some_commit_order(history: History, extra: Order, demanded: Pairs) -> bool:
    """Whether a total order keeps the base relation and what the axiom demands."""
    found = orders(list(history.nodes), base(history, extra))
    return any(all(order.index(u) < order.index(w) for u, w in demanded) for order in found)


def axiom(sees: Order, extra: Order) -> Callable[[History], bool]:
    """If r, which reads key k from w, sees u before, and u writes k too, then u is before w."""

    def holds(history: History) -> bool:
        before = sees(history)
        demanded = frozenset(
            (u, w) for r, k, w in history.reads for u in history.writers(k) if u != w and (u, r) in before
        )
        return some_commit_order(history, extra, demanded)

    return holds


def pl_2(extra: Order) -> Callable[[History], bool]:
    return lambda history: some_commit_order(history, extra, NOTHING)


def read_uncommitted(extra: Order) -> Callable[[History], bool]:
    """Reads decide nothing but the order of versions."""

    def holds(history: History) -> bool:
        before = history.initial | history.version_pairs | extra(history)
        return next(orders(list(history.nodes), before), None) is not None

    return holds


def read_committed(extra: Order) -> Callable[[History], bool]:
    """The same with: r sees u before, if it has read from u earlier in its program."""

    def holds(history: History) -> bool:
        demanded = {
            (u, w)
            for r in history.nodes
            for place, (k, w) in enumerate(history.operations[r])
            for _, u in history.operations[r][:place]
            if w != WRITES and u not in (WRITES, w, r) and history.writes(u, k)
        }
        return some_commit_order(history, extra, frozenset(demanded))

    return holds


def pram(history: History) -> Pairs:
    """Beside one's own session: what was read earlier in it, and all that was before that in the writer's session."""
    read, session = history.read, history.session
    return session | then(read, session) | then(session, read) | then(then(session, read), session)


def writes_follow_reads(history: History) -> Pairs:
    """What was read in the transaction that one reads from, or before it in its session."""
    read, session = history.read, history.session
    return then(read, read) | then(then(read, session), read)


def causal(history: History) -> Pairs:
    return paths(history.read | history.session)


def version_orders(history: History, extra: Order) -> Iterator[dict[int, tuple[int, ...]]]:
    """All orders of the writers of each key that keep the base relation: others make a cycle with it."""
    before = paths(base(history, extra))
    for chosen in product(*(list(orders(history.writers(k), before)) for k in history.keys)):
        yield dict(zip(history.keys, chosen, strict=True))


def cursor_stability(history: History) -> bool:
    """Some order of each key's versions that goes with the flow of information, and in which nothing is between what a
    transaction overwrites and what it had read of the same key."""
    updates = [(r, k, w) for r, k, w in history.reads if history.writes(r, k)]
    return any(
        all(order[k].index(w) + 1 == order[k].index(r) for r, k, w in updates)
        and all(t != u for t, u in paths(base(history, no_sessions) | overwritten(order)))
        for order in version_orders(history, no_sessions)
    )


def overwritten(order: dict[int, tuple[int, ...]]) -> Pairs:
    """Neighbours."""
    return frozenset(pair for writers in order.values() for pair in pairwise(writers))


def parallel_snapshot(extra: Order) -> Callable[[History], bool]:
    """Some order of each key's versions without a cycle of dependencies in which at most one is an anti-dependency."""

    def holds(history: History) -> bool:
        return any(sound(history, order) for order in version_orders(history, extra))

    def sound(history: History, order: dict[int, tuple[int, ...]]) -> bool:
        anti = frozenset(
            (r, order[k][order[k].index(w) + 1])
            for r, k, w in history.reads
            if order[k].index(w) + 1 < len(order[k]) and order[k][order[k].index(w) + 1] != r
        )
        dependencies = paths(overwritten(order) | base(history, extra))
        at_most_one = dependencies | then(anti, dependencies)
        return all(t != u for t, u in at_most_one)

    return holds


def snapshot(extra: Order) -> Callable[[History], bool]:
    """Some commit order, and of it a prefix for each transaction to read from, after which no other wrote the same
    keys until it committed; what precedes it is in the prefix."""

    def holds(history: History) -> bool:
        before = extra(history)
        found = orders(list(history.nodes), base(history, extra))
        return any(all(placed(history, before, order, t) for t in order) for order in found)

    def placed(history: History, before: Pairs, order: tuple[int, ...], t: int) -> bool:
        place = order.index(t)
        return t == INITIAL or any(
            all(
                [u for u in order[:length] if history.writes(u, k)][-1:] == [w]
                if w != WRITES
                else not any(history.writes(u, k) for u in order[length:place])
                for k, w in history.operations[t]
            )
            and all(u in order[:length] for u in history.nodes if (u, t) in before)
            for length in range(1, place + 1)
        )

    return holds


def serial(extra: Order) -> Callable[[History], bool]:
    """Some total order in which each read is of the last write before."""

    def holds(history: History) -> bool:
        found = orders(list(history.nodes), base(history, extra))
        return any(all(explained(history, order, *read) for read in history.reads) for order in found)

    def explained(history: History, order: tuple[int, ...], r: int, k: int, w: int) -> bool:
        return [u for u in order[: order.index(r)] if history.writes(u, k)][-1:] == [w]

    return holds


MODELS: dict[str, Callable[[History], bool]] = {
    "read-uncommitted": read_uncommitted(no_sessions),
    "PL-2": pl_2(no_sessions),
    "strong-session-PL-2": pl_2(sessions),
    "read-committed": read_committed(no_sessions),
    "cursor-stability": cursor_stability,
    "read-atomic": axiom(reads, no_sessions),
    "read-your-writes": axiom(sessions, no_sessions),
    "monotonic-reads": axiom(lambda history: then(history.read, history.session), no_sessions),
    "monotonic-writes": axiom(lambda history: then(history.session, history.read), sessions),
    "writes-follow-reads": axiom(writes_follow_reads, no_sessions),
    "pram": axiom(pram, sessions),
    "strong-session-read-uncommitted": read_uncommitted(sessions),
    "strong-session-read-committed": read_committed(sessions),
    "strong-session-read-atomic": axiom(lambda history: history.read | history.session, sessions),
    "causal": axiom(causal, sessions),
    "consistent-view": parallel_snapshot(no_sessions),
    "parallel-snapshot-isolation": parallel_snapshot(no_sessions),
    "strong-session-parallel-snapshot-isolation": parallel_snapshot(sessions),
    "snapshot-isolation": snapshot(no_sessions),
    "strong-session-snapshot-isolation": snapshot(sessions),
    "strong-snapshot-isolation": snapshot(realtime),
    "repeatable-read": serial(no_sessions),
    "serializable": serial(no_sessions),
    "strong-session-serializable": serial(sessions),
    "strict-serializable": serial(realtime),
}
"""By the names in `checkers.transactions.model.lattice`; and strong-session-PL-2, which is none of those."""


def allowed(model: str, committed: Committed) -> bool:
    return MODELS[model](History(committed))
