"""Places (queue and offset) that hold more than one message, in one replica or in several."""

from __future__ import annotations

import numpy as np

from checkers.api.excuses import Excuses
from checkers.api.findings import Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import Bool, Int64, run_starts, witness_order
from checkers.log.final_reads import FinalReads
from checkers.log.places import FINAL_FACT


class Conflicts:
    """Facts of places that hold more than one message, sorted by place and operation."""

    def __init__(self, column: dict[str, Int64], final: FinalReads) -> None:
        facts = np.flatnonzero(column["kind"] <= FINAL_FACT)
        facts = facts[np.lexsort((column["offset"][facts], column["queue"][facts]))]
        place = _numbered(column["queue"][facts], column["offset"][facts])
        message = column["message"][facts]
        first = message[np.searchsorted(place, place)]
        rows = facts[np.isin(place, place[message != first])]
        order = np.lexsort(tuple(column[name][rows] for name in ("message", "index", "offset", "queue")))
        self.column = {name: values[rows[order]] for name, values in column.items()}
        self.final = final

    def report(self, findings: Findings, excuses: Excuses) -> None:
        """Reports for each place the earliest fact and the earliest that contradicts it, and the same for final
        reads."""
        every = np.arange(len(self.column["kind"]))
        place, head = self._heads(every)
        other = self._first(place, self._differs("message", every, head))
        earliest, other = every[np.flatnonzero(run_starts(place))], every[other]
        first = self.column["index"][earliest]
        for excuse, some in excuses.split("inconsistent-offsets", first, first):
            self._add(findings, "inconsistent-offsets", earliest[some], other[some], excuse)

        finals = np.flatnonzero(self.column["kind"] == FINAL_FACT)
        place, head = self._heads(finals)
        other_message, other_node = (self._differs(name, finals, head) for name in ("message", "node"))
        by_message, by_node = self._first(place, other_message), self._first(place, other_node)
        by_both = self._first(place, other_message & other_node)
        diverging = (by_message >= 0) & (by_node >= 0)
        # If no row differs in both, the first that differs in one and the first that differs in the other contradict
        # each other: the one agrees with the head in its replica, the other in its message.
        one = np.where(by_both >= 0, np.flatnonzero(run_starts(place)), by_message)[diverging]
        two = np.where(by_both >= 0, by_both, by_node)[diverging]
        one, two = finals[one], finals[two]
        first = np.minimum(self.column["index"][one], self.column["index"][two])
        for excuse, some in excuses.split("diverging-replicas", first, first):
            self._add(findings, "diverging-replicas", one[some], two[some], excuse)

    def _heads(self, rows: Int64) -> tuple[Int64, Int64]:
        """For each row the number of its place, and the first of the rows there."""
        place = _numbered(self.column["queue"][rows], self.column["offset"][rows])
        return place, rows[np.searchsorted(place, place)]

    def _differs(self, name: str, rows: Int64, head: Int64) -> Bool:
        differs: Bool = self.column[name][rows] != self.column[name][head]
        return differs

    @staticmethod
    def _first(place: Int64, which: Bool) -> Int64:
        """For each place the first row for which `which` holds, -1 if there is none."""
        first = np.full(place[-1] + 1 if len(place) else 0, -1, dtype=np.int64)
        held = np.flatnonzero(which)[::-1]
        first[place[held]] = held
        return first

    def _add(self, findings: Findings, name: str, one: Int64, other: Int64, excuse: int | None = None) -> None:
        index = self.column["index"]
        chosen = witness_order(index[one], index[other], ties=(self.column["offset"][one],))[:EXAMPLES]
        findings.add(name, len(one), [self._example(int(one[i]), int(other[i])) for i in chosen], excuse)

    def _example(self, one: int, other: int) -> Example:
        column = self.column
        queue, offset = self.final.queues[column["queue"][one]], int(column["offset"][one])
        shown = [self._describe(one), self._describe(other)]
        return Example(
            key=queue,
            operations=tuple(sorted({int(column["index"][one]), int(column["index"][other])})),
            tie=(offset,),
            because=f"offset {offset} of {queue or 'the queue'} holds {shown[0]} and {shown[1]}",
            details={"offset": offset, "messages": [int(column["message"][one]), int(column["message"][other])]},
        )

    def _describe(self, row: int) -> str:
        node = int(self.column["node"][row])
        where = f" at {self.final.nodes[node]}" if node >= 0 else ""
        return f"message {self.column['message'][row]} (operation {self.column['index'][row]}{where})"


def _numbered(*sorted_columns: Int64) -> Int64:
    """Dense numbers for the distinct rows of sorted columns."""
    return np.cumsum(run_starts(*sorted_columns)) - 1
