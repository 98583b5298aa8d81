"""Commit orders of the weaker models, which respect reads, the order that lists show, and what readers had seen."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from checkers.transactions.verify.demands import READ, SESSION, Demand, ExternalOrder, Seen
from checkers.transactions.verify.history import INITIAL, Refuted, TransactionHistory
from checkers.transactions.verify.ordered_reads import Read, Versions, ordered_transactions

CELLS = 100_000_000
"""The most entries of clocks (transactions times sessions) that are held at a time."""

Positions = npt.NDArray[np.int64]
Clocks = npt.NDArray[np.int32]


def require_commit_order(history: TransactionHistory, demand: Demand, numbers: Sequence[int]) -> None:
    """Raises Refuted."""
    history.require_unique_writes()
    ordered = ordered_transactions(history, numbers, atomic=demand.atomic)
    order = _Order(
        history=history,
        keeps=demand.keeps,
        numbers=numbers,
        reads=ordered.reads,
        writes=ordered.writes,
        versions=ordered.versions,
    )
    if demand.seen is Seen.EARLIER_READS:
        order.require_read_committed()
    elif demand.seen is Seen.UPDATES:
        order.require_updates()
    elif demand.seen is Seen.PATHS:
        order.require_paths(demand.paths)
    elif demand.seen is not Seen.NOTHING:
        order.require_clocks(demand.seen)


class _Highest:
    """The highest number that was noted up to some moment. Moments must ascend."""

    def __init__(self) -> None:
        self.of: dict[int, set[int]] = defaultdict(set)
        """The first members of names -> the second members."""
        self._steps: dict[tuple[int, int], tuple[list[int], list[int]]] = {}

    def add(self, name: tuple[int, int], moment: int, number: int) -> None:
        if name not in self._steps:
            self.of[name[0]].add(name[1])
            self._steps[name] = [moment], [number]
        elif (steps := self._steps[name])[1][-1] < number:
            steps[0].append(moment)
            steps[1].append(number)

    def before(self, name: tuple[int, int], moment: int) -> int:
        moments, numbers = self._steps.get(name, ((), ()))
        at = bisect_left(moments, moment)
        return numbers[at - 1] if at else -1


@dataclass(frozen=True, kw_only=True)
class _Order:
    """A commit order, in which transactions are named by their positions."""

    history: TransactionHistory
    keeps: ExternalOrder
    numbers: Sequence[int]
    reads: Sequence[Sequence[Read]]
    writes: Sequence[Sequence[int]]
    versions: dict[int, Versions]

    def require(self, reader: int, key: int, writer: int, seen: int) -> None:
        """Raises Refuted if the order puts `seen`, which wrote this key, behind the writer whose value was read."""
        if seen > writer:
            names = [
                self.history.name(self.numbers[at]) if at != INITIAL else "nobody" for at in (reader, writer, seen)
            ]
            raise Refuted(
                f"{names[0]} read {self.history.keys[key]} from {names[1]}, and had seen {names[2]}, "
                "which wrote it later in this order"
            )

    def require_read_committed(self) -> None:
        for reader, reads in enumerate(self.reads):
            seen: dict[int, int] = {}
            met = {INITIAL}
            for key, writer in reads:
                self.require(reader, key, writer, seen.get(key, INITIAL))
                if writer not in met:
                    met.add(writer)
                    _raise(seen, self.writes, [writer])

    def require_updates(self) -> None:
        for reader, reads in enumerate(self.reads):
            for key, writer in reads:
                if key in self.writes[reader]:
                    writers = self.versions[key].writers
                    at = bisect_left(writers, reader)
                    self.require(reader, key, writer, writers[at - 1] if at else INITIAL)

    def require_paths(self, paths: Sequence[tuple[str, ...]]) -> None:
        process = self.history.process[self.numbers].tolist() if self.numbers else []
        start = self.history.start[self.numbers].tolist() if self.numbers else []
        sources = [sorted({writer for _, writer in reads if writer != INITIAL}) for reads in self.reads]
        wrote, saw, heard = self._of_sessions(paths, process, start, sources)
        for reader, reads in enumerate(self.reads):
            mine, began = process[reader], start[reader]
            questions = [read for read in reads if self._has_later_writer(reader, *read)]
            for path in paths if questions else ():
                seen: dict[int, int] = {}
                if path == (READ,):
                    _raise(seen, self.writes, sources[reader])
                elif path == (READ, READ):
                    _raise(seen, self.writes, [w for u in sources[reader] for w in sources[u]])
                for key, writer in questions:
                    latest = [seen.get(key, INITIAL)]
                    if path == (SESSION,):
                        latest.append(wrote.before((mine, key), began))
                    elif path == (READ, SESSION):
                        latest.append(saw.before((mine, key), began))
                    elif path == (SESSION, READ):
                        latest += [wrote.before((process[u], key), start[u]) for u in sources[reader]]
                    elif path == (READ, SESSION, READ):
                        latest += [saw.before((process[u], key), start[u]) for u in sources[reader]]
                    elif path == (SESSION, READ, SESSION):
                        for other in heard.of.get(mine, ()):
                            latest.append(wrote.before((other, key), heard.before((mine, other), began)))
                    self.require(reader, key, writer, max(latest))

    def _has_later_writer(self, reader: int, key: int, writer: int) -> bool:
        """Whether there is a later writer that can have been seen. If the order keeps sessions, it is before the
        reader."""
        writers = self.versions[key].writers if key in self.versions else []
        at = bisect_right(writers, writer)
        return at < len(writers) and (self.keeps is ExternalOrder.NOTHING or writers[at] < reader)

    def _of_sessions(
        self, paths: Sequence[tuple[str, ...]], process: list[int], start: list[int], sources: list[list[int]]
    ) -> tuple[_Highest, _Highest, _Highest]:
        """What its ok transactions wrote, (process, key) -> positions; saw of others, likewise; and heard, (process,
        other process) -> where the transactions of the other one that it read from began."""
        wrote, saw, heard = _Highest(), _Highest(), _Highest()
        reads_count = any(path[:2] == (READ, SESSION) for path in paths)
        for one in sorted(range(len(self.numbers)), key=start.__getitem__):
            if not self.history.ok[self.numbers[one]]:
                continue
            for key in self.writes[one]:
                wrote.add((process[one], key), start[one], one)
            for u in sources[one]:
                heard.add((process[one], process[u]), start[one], start[u])
                if reads_count:
                    for key in self.writes[u]:
                        saw.add((process[one], key), start[one], u)
        return wrote, saw, heard

    def require_clocks(self, seen: Seen) -> None:
        """Raises Refuted if a reader had seen a writer of a key that the order puts between the one that was read from
        and the reader."""
        questions = list(self._questions(seen))
        if not questions:
            return
        behind = self._behind(seen)
        chain, place = _chains(behind)
        count = max(chain.tolist(), default=-1) + 1
        width = max(1, min(count, CELLS // len(self.numbers)))
        for low in range(0, count, width):
            clocks = _clocks(behind, chain, place, range(low, min(low + width, count)))
            for reader, key, writer, between in questions:
                inside = between[(chain[between] >= low) & (chain[between] < low + width)]
                met = inside[clocks[reader][chain[inside] - low] >= place[inside]]
                if len(met):
                    self.require(reader, key, writer, int(met[0]))

    def _questions(self, seen: Seen) -> Iterator[tuple[int, int, int, Positions]]:
        """(reader, key, the writer read from, the writers between). If versions replace each other, a transaction that
        has seen a later one has seen the first one behind the version read, so only that one is asked about."""
        writers = {key: np.array(versions.writers, dtype=np.int64) for key, versions in self.versions.items()}
        for reader, reads in enumerate(self.reads):
            for key, writer in reads:
                of_key = writers.get(key, np.empty(0, dtype=np.int64))
                low, high = np.searchsorted(of_key, (writer, reader), side="right").tolist()
                between = of_key[low : low + 1 if seen is Seen.VERSIONS else high]
                between = between[between < reader]
                if len(between):
                    yield reader, key, writer, between

    def _behind(self, seen: Seen) -> list[list[int]]:
        """By transaction: those that it has seen by one step, those of its session first."""
        found = []
        last_ok: dict[int, int] = {}
        last_writer: dict[int, int] = {}
        sessions = self.keeps is not ExternalOrder.NOTHING
        for at, (number, reads) in enumerate(zip(self.numbers, self.reads, strict=True)):
            steps = {writer for _, writer in reads}
            if seen is Seen.VERSIONS:
                steps |= {last_writer.get(key, INITIAL) for key in self.writes[at]}
                last_writer |= dict.fromkeys(self.writes[at], at)
            before = last_ok.get(int(self.history.process[number]), INITIAL) if sessions else INITIAL
            found.append([one for one in (before, *sorted(steps - {before}, reverse=True)) if one != INITIAL])
            if self.history.ok[number]:
                last_ok[int(self.history.process[number])] = at
        return found


def _raise(highest: dict[int, int], writes: Sequence[Sequence[int]], transactions: Iterable[int]) -> None:
    for transaction in transactions:
        for key in writes[transaction]:
            if highest.get(key, INITIAL) < transaction:
                highest[key] = transaction


def _chains(behind: Sequence[Sequence[int]]) -> tuple[Positions, Positions]:
    """(the chain of each transaction, its place there, from 1). Each transaction on a chain has seen those before
    it."""
    chain, place = np.zeros(len(behind), dtype=np.int64), np.ones(len(behind), dtype=np.int64)
    last: list[int] = []
    of: list[int] = []
    for at, seen in enumerate(behind):
        mine = next((of[one] for one in seen if last[of[one]] == one), len(last))
        if mine == len(last):
            last.append(at)
        else:
            place[at] = place[last[mine]] + 1
            last[mine] = at
        of.append(mine)
        chain[at] = mine
    return chain, place


def _clocks(behind: Sequence[Sequence[int]], chain: Positions, place: Positions, chains: range) -> Clocks:
    """How far each transaction has seen each of these chains, not counting itself."""
    clocks = np.zeros((len(behind), len(chains)), dtype=np.int32)
    of, at_place = chain.tolist(), place.tolist()
    for clock, seen in zip(clocks, behind, strict=True):
        for one in seen:
            np.maximum(clock, clocks[one], out=clock)
            if of[one] in chains:
                own = of[one] - chains.start
                clock[own] = max(clock[own], at_place[one])
    return clocks
