"""Why a level forces one transaction before another, as steps of a proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Bool, Int32, Int64
from checkers.transactions.evidence.proof import Because, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.orders.weak.accesses import Accesses
from checkers.transactions.orders.weak.precedence import Base, Successors
from harness.compiled import compiled


@dataclass(frozen=True, kw_only=True)
class Sight:
    """The paths along which the transaction at the end sees the one at the beginning, as a finite automaton.

    State 0 is the first one. Each state is (next state by READ, next state by SESSION, whether a path may end here);
    -1: there is no such step. A session's later transactions are reached one after the other, so a state after SESSION
    leads back to itself by SESSION.
    """

    states: tuple[tuple[int, int, bool], ...]


@dataclass(frozen=True, kw_only=True)
class Witnesses:
    """Looks for reasons in one history."""

    accesses: Accesses
    reader: Int32
    """The transaction of each operation."""
    readers: Successors
    followers: Successors
    """The next transaction of each in its session."""

    @classmethod
    def of(cls, accesses: Accesses) -> Witnesses:
        follows = np.flatnonzero(accesses.before > INITIAL).astype(np.int32)
        rows = accesses.committed
        reader = rows.transaction
        reads = np.flatnonzero(rows.writer > INITIAL)
        return cls(
            accesses=accesses,
            reader=reader,
            readers=Successors.of(rows.writer[reads], reader[reads], len(accesses)),
            followers=Successors.of(accesses.before[follows], follows, len(accesses)),
        )

    def proof(self, cycle: Int32, base: Base, sight: Sight | None) -> Proof:
        """The proof that a cycle is forced. `cycle`: each transaction comes before the next, the last before the first.
        `sight`: None for the rule of read committed."""
        nodes = cycle.tolist()
        if base is Base.READS_AND_SESSIONS:
            nodes = self._without_stops(nodes)
        steps: list[ProofStep] = []
        numbers = [
            self._step(steps, source, target, base, sight)
            for source, target in zip(nodes, [*nodes[1:], *nodes[:1]], strict=True)
        ]
        return Proof(steps=tuple(steps), cycle=tuple(numbers))

    def _without_stops(self, nodes: list[int]) -> list[int]:
        """The nodes without those between two others of their session."""
        rows = self.accesses.committed
        session, definite = rows.session, self.accesses.definite

        def in_order(*several: int) -> bool:
            return (
                len({int(session[t]) for t in several}) == 1
                and all(definite[t] for t in several[:-1])
                and sorted(several) == list(several)
            )

        kept: list[int] = []
        for t, following in zip(nodes, [*nodes[1:], *nodes[:1]], strict=True):
            if not (kept and in_order(kept[-1], t, following)):
                kept.append(t)
        if len(kept) > 2 and in_order(kept[-1], kept[0], kept[1]):
            del kept[0]
        return kept

    def _step(self, steps: list[ProofStep], source: int, target: int, base: Base, sight: Sight | None) -> int:
        """Appends the step, behind those that it follows from; returns its number."""
        rows = self.accesses.committed
        known = rows.version_edges[(rows.version_edges[:, 1] == source) & (rows.version_edges[:, 2] == target), 0]
        if source == INITIAL:
            steps.append(ProofStep(source=source, target=target, because=Because.INITIAL))
        elif len(keys := self._keys_read(target, source)):
            steps.append(ProofStep(source=source, target=target, because=Because.READ, key=int(keys[0])))
        elif len(known):
            steps.append(ProofStep(source=source, target=target, because=Because.VERSION_ORDER, key=int(known[0])))
        elif base is Base.READS_AND_SESSIONS and self._in_session(source, target):
            steps.append(ProofStep(source=source, target=target, because=Because.SESSION))
        else:
            steps += self._overwritten(len(steps), source, target, sight)
        return len(steps) - 1

    def _in_session(self, t: int, u: int) -> bool:
        session = self.accesses.committed.session
        return bool(session[t] == session[u] and self.accesses.definite[t] and t < u)

    def _operations(self, t: int) -> slice:
        first = self.accesses.committed.first
        return slice(int(first[t]), int(first[t + 1]))

    def _keys_read(self, reader: int, writer: int) -> Int32:
        rows, part = self.accesses.committed, self._operations(reader)
        keys: Int32 = rows.key[part][rows.writer[part] == writer]
        return keys

    def _overwritten(self, number: int, u: int, w: int, sight: Sight | None) -> list[ProofStep]:
        rows = self.accesses.committed
        wrote = self.accesses.written[slice(*self.accesses.written_first[u : u + 2].tolist())]
        reads = np.flatnonzero((rows.writer == w) & np.isin(rows.key, wrote))
        if sight is None:
            begins = {
                r: i for i, r in reversed([(int(i), int(self.reader[i])) for i in np.flatnonzero(rows.writer == u)])
            }
            read = next(i for i in reads.tolist() if begins.get(int(self.reader[i]), i) < i)
            path = [
                ProofStep(
                    source=u,
                    target=int(self.reader[read]),
                    because=Because.READ,
                    key=int(rows.key[begins[int(self.reader[read])]]),
                )
            ]
        else:
            nodes, by_session = self._path(u, self.reader[reads], sight)
            read = int(reads[np.flatnonzero(self.reader[reads] == nodes[-1])[0]])
            path = self._steps_along(nodes, by_session)
        last = ProofStep(
            source=u,
            target=w,
            because=Because.OVERWRITTEN,
            key=int(rows.key[read]),
            reader=int(self.reader[read]),
            writer=w,
            path=tuple(range(number, number + len(path))),
        )
        return [*path, last]

    def _path(self, u: int, wanted: Int32, sight: Sight) -> tuple[list[int], list[bool]]:
        is_wanted = np.zeros(len(self.accesses), dtype=np.bool_)
        is_wanted[wanted] = True
        nodes, by_session = _shortest(
            u,
            is_wanted,
            self.readers,
            self.followers,
            np.array([state[0] for state in sight.states], dtype=np.int64),
            np.array([state[1] for state in sight.states], dtype=np.int64),
            np.array([state[2] for state in sight.states]),
        )
        return nodes.tolist(), by_session.tolist()

    def _steps_along(self, nodes: list[int], by_session: list[bool]) -> list[ProofStep]:
        """The steps along a path, where neighbouring steps by session become one."""
        steps: list[ProofStep] = []
        for source, target, session in zip(nodes[:-1], nodes[1:], by_session, strict=True):
            if session and steps and steps[-1].because is Because.SESSION:
                steps[-1] = ProofStep(source=steps[-1].source, target=target, because=Because.SESSION)
            elif session:
                steps.append(ProofStep(source=source, target=target, because=Because.SESSION))
            else:
                key = int(self._keys_read(target, source)[0])
                steps.append(ProofStep(source=source, target=target, because=Because.READ, key=key))
        return steps


@compiled
def _shortest(
    begin: int,
    wanted: Bool,
    readers: Successors,
    followers: Successors,
    by_read: Int64,
    by_session: Int64,
    ends: Bool,
) -> tuple[Int64, Bool]:
    """The transactions on a path from one to a wanted one, and which of its steps are by session. The last three
    parameters have an element for each state of the `Sight`."""
    states = len(ends)
    parent = np.full(len(wanted) * states, -1, dtype=np.int64)
    queue = np.empty(len(wanted) * states, dtype=np.int64)
    queue[0], count, done = begin * states, 1, 0
    parent[begin * states] = begin * states
    last = -1
    while done < count and last < 0:
        at = queue[done]
        done += 1
        node, state = at // states, at % states
        for way in range(2):
            onward = by_read[state] if way == 0 else by_session[state]
            if onward < 0:
                continue
            onwards = readers if way == 0 else followers
            for i in range(onwards.first[node], onwards.first[node + 1]):
                other = onwards.target[i]
                then = other * states + onward
                if parent[then] >= 0:
                    continue
                # Twice the place, and one more if the step is by session.
                parent[then] = at * 2 + way
                queue[count] = then
                count += 1
                if ends[onward] and wanted[other] and last < 0:
                    last = then
    size, at = 1, last
    while at != begin * states:
        size += 1
        at = parent[at] // 2
    nodes, ways = np.empty(size, dtype=np.int64), np.empty(size - 1, dtype=np.bool_)
    at = last
    for i in range(size - 1, 0, -1):
        nodes[i] = at // states
        ways[i - 1] = parent[at] % 2 == 1
        at = parent[at] // 2
    nodes[0] = begin
    return nodes, ways
