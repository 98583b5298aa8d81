"""Why a cycle is one, and why no order explains a history: as data first, then as prose.

Takes a cycle of dependencies with a reason for each (`graph/cycles.py`, `reasons.py`), or a proof (`proof.py`), and the
transactions that they are about. Transactions are called T1, T2 … in the order in which they appear, T0 the initial
one. What is told is bounded: of long proofs the first steps that the contradiction needs, of long lists the ends.

`details` of an explanation is plain data for `Example.details`, from which the report draws; `because` is its prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import INFO, NONE
from checkers.plan import Dataset, Engine
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.graph.cycles import Cycle
from checkers.transactions.elle.list_append.wording import told as list_told
from checkers.transactions.evidence.certificate import Names
from checkers.transactions.evidence.proof import Because, Proof, Step
from checkers.transactions.history.committed import INITIAL
from checkers.transactions.history.micro_operations import APPEND, R, W, micro_operations

STEPS_TOLD = 24
"""Of a block of a proof."""
LINES_TOLD = 60
EDGES_TOLD = 24
OPERATIONS_TOLD = 8
"""Of a transaction; those on keys that the explanation is about before others."""
MOMENTS = ("begins", "commits")
INITIAL_INDEX = -1
"""Stands for the history index of the initial transaction's invocation."""

Value = int | tuple[int, ...] | None


@dataclass(frozen=True, kw_only=True)
class ShownTransaction:
    """A transaction, with what it was told."""

    index: int
    process: int
    indefinite: bool = False
    operations: tuple[tuple[int, str, Value], ...] = ()
    """(position in FUNCTIONS, key, value or list)."""

    def written(self, key: str) -> int | None:
        """Its last write of the key."""
        found = [value for f, of, value in self.operations if f != R and of == key]
        return found[-1] if found and isinstance(found[-1], int) else None

    def wrote(self, key: str) -> str:
        value = self.written(key)
        appends = any(f == APPEND for f, of, _ in self.operations if of == key)
        return f"appended {value} to {key}" if appends else f"wrote {key} = {value}"

    def read(self, key: str, value: int | None) -> Value:
        """What it was told of the key when that was the value, or ended in it; else what shows it; else the first."""
        told = [value for f, of, value in self.operations if f == R and of == key]
        ending = (one for one in told if (one[-1:] == (value,) if isinstance(one, tuple) else one == value))
        showing = (one for one in told if isinstance(one, tuple) and value in one)
        return next(chain(ending, showing, told), None)


def value_told(value: Value, about: Container[int] = ()) -> str:
    """Of a long list the ends, and the elements that it is `about`."""
    if value is None:
        return "null"
    return list_told(value, about) if isinstance(value, tuple) else str(value)


def involved(engine: Engine, spans: Dataset, indices: Iterable[int]) -> Mapping[int, ShownTransaction]:
    """Transactions by the history indices of their invocations; `spans` as of checkers.causal.spans."""
    wanted = np.array(sorted(set(indices)), dtype=np.int64)
    rows = engine.gather(engine.mapped(spans, partial(only, wanted=wanted), spans.schema), len(wanted))
    return {one.index: one for one in transactions_told(rows)}


def only(spans: pa.Table, *, wanted: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Table:
    """Kernel over transactions."""
    return spans.filter(pa.array(np.isin(spans["start"].to_numpy(), wanted)))


def transactions_told(spans: pa.Table) -> Iterator[ShownTransaction]:
    """A list of which nothing was told is empty; a register null."""
    parts = micro_operations(spans["txn"])
    operations: dict[int, list[tuple[int, str, Value]]] = {}
    columns = (parts.transaction.tolist(), parts.f.tolist(), parts.key.to_pylist(), parts.value.tolist())
    nothing = () if (parts.f == APPEND).any() else None
    for row, f, key, value, values in zip(*columns, parts.values.to_pylist(), strict=True):
        shown = tuple(values) if values is not None else nothing if value == NONE else value
        operations.setdefault(row, []).append((f, key, shown))
    for row, span in enumerate(spans.select(["start", "process", "type"]).to_pylist()):
        yield ShownTransaction(
            index=span["start"],
            process=span["process"],
            indefinite=span["type"] == INFO,
            operations=tuple(operations.get(row, ())),
        )


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One step from a transaction to another one."""

    kind: str
    """Of edges a Kind, of steps a Because, in small letters."""
    source: int
    """History index of the invocation, as all that follow; INITIAL_INDEX."""
    target: int
    key: str | None = None
    value: int | None = None
    """What the source wrote, or read."""
    next_value: int | None = None
    """What the target wrote over it."""
    evidence: int | None = None
    """A transaction whose read shows it."""
    reader: int | None = None
    writer: int | None = None
    number: int | None = None
    """Of a step that others use."""
    uses: tuple[int, ...] = ()
    """Numbers of the steps that lead there."""
    moments: tuple[str, str] | None = None
    """Where transactions begin and commit apart, which of the source comes before which of the target."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Sentences, each a step; those of `cycle` lead back to where they began."""

    name: str
    sentences: tuple[Sentence, ...]
    cycle: tuple[Sentence, ...] = ()
    cases: tuple[Explanation, ...] = ()
    left_out: int = 0
    """Steps that are not told."""
    transactions: Mapping[int, ShownTransaction]

    @property
    def named(self) -> Mapping[int, str]:
        """History index -> T1, T2 … in order of appearance; T0 is the initial transaction."""
        names: dict[int, str] = {INITIAL_INDEX: "T0"}
        for sentence in self._all_sentences():
            for index in (sentence.source, sentence.target, sentence.reader, sentence.writer, sentence.evidence):
                if index is not None:
                    names.setdefault(index, f"T{len(names)}")
        return names

    def _all_sentences(self) -> Iterator[Sentence]:
        for _, block in self.blocks():
            yield from block.sentences
            yield from block.cycle

    @property
    def because(self) -> str:
        """All of it in one paragraph."""
        return " ".join(self.lines())

    @property
    def _words(self) -> _Words:
        about: dict[str, set[int]] = {}
        for sentence in self._all_sentences():
            if sentence.key is None:
                continue
            ends = {sentence.source, sentence.target, sentence.writer} & self.transactions.keys()
            written = (self.transactions[index].written(sentence.key) for index in ends if index is not None)
            values = (*written, sentence.value, sentence.next_value)
            about.setdefault(sentence.key, set()).update(value for value in values if value is not None)
        return _Words(named=self.named, transactions=self.transactions, about=about)

    def lines(self) -> list[str]:
        """First what the transactions that come up are."""
        words = self._words
        told = words.lines(self)
        if len(told) > LINES_TOLD:
            told[LINES_TOLD:] = [f"And {len(told) - LINES_TOLD} more lines, of which the certificate has all steps."]
        mentioned = set(re.findall(r"\bT\d+\b", " ".join(told)))
        listed = [words.introduced(index) for index, name in words.named.items() if name in mentioned]
        return [*listed, *told]

    def details(self) -> dict[str, Any]:
        """Plain data: `transactions` {name, index, process, operations}, `edges` of a cycle of them {kind, source,
        target, key, because}, and `steps`, all sentences in words. Of cases, the cycle of the first that has one, as
        `case` calls it."""
        words = self._words
        label, cycle = next(((label, block.cycle) for label, block in self.blocks() if block.cycle), ("", ()))
        around = [edge for edge in cycle if edge.source != edge.target]
        drawn = around[:EDGES_TOLD]
        shown = [index for index in words.named if any(index in (edge.source, edge.target) for edge in drawn)]
        return {
            "transactions": [words.data(index) for index in shown],
            "edges": [
                {
                    "kind": DRAWN_AS.get(edge.kind, edge.kind),
                    "source": words.named[edge.source],
                    "target": words.named[edge.target],
                    "key": edge.key,
                    "because": words.sentence(edge),
                }
                for edge in drawn
            ],
            "edges_left_out": len(around) - len(drawn),
            "case": label,
            "steps": self.lines(),
        }

    def blocks(self) -> Iterator[tuple[str, Explanation]]:
        """This, and behind it each case before those within it: with what it is called, 1, 1.1, 1.2, 2 …"""
        waiting = [("", self)]
        while waiting:
            label, block = waiting.pop()
            yield label, block
            within = f"{label}." if label else ""
            waiting += [(f"{within}{number}", case) for number, case in reversed([*enumerate(block.cases, 1)])]


DRAWN_AS = {
    "read": "wr",
    "known": "ww",
    "overwritten": "ww",
    "overwrites": "rw",
    "exclusive": "ww",
    "case": "ww",
    "session": "process",
}


def explained_cycle(cycle: Cycle, reasons: pa.Table, transactions: Mapping[int, ShownTransaction]) -> Explanation:
    """`reasons` are EDGE_REASONS, one for each WW, WR and RW edge of the cycle."""
    found = {(row["kind"], row["source"], row["target"]): row for row in reasons.to_pylist()}
    sentences = []
    for kind, source, target in cycle.edges:
        row = found.get((int(kind), source, target), {})
        sentences.append(
            Sentence(
                kind=kind.name.lower(),
                source=source,
                target=target,
                key=row.get("key"),
                value=row.get("value"),
                next_value=row.get("next_value"),
                evidence=row.get("evidence"),
            )
        )
    return Explanation(name=cycle.name, sentences=tuple(sentences), cycle=tuple(sentences), transactions=transactions)


def explained_proof(proof: Proof, names: Names, transactions: Mapping[int, ShownTransaction]) -> Explanation:
    """Of each block only the steps that its end needs; blocks are explained from the innermost ones outwards."""
    return _Blocks(names=names, transactions=transactions).explained(proof)


def indices_of_proof(proof: Proof, names: Names) -> frozenset[int]:
    """The transactions, by history index, that an explanation of the proof looks at."""
    blocks, found = [proof], set()
    while blocks:
        block = blocks.pop()
        blocks += block.cases or ()
        for step in block.steps:
            numbers = {step.source // names.events, step.target // names.events, step.reader, step.writer}
            found |= {names.transaction(number) for number in numbers if number > INITIAL}
    return frozenset(found)


@dataclass(frozen=True, kw_only=True)
class _Blocks:
    names: Names
    transactions: Mapping[int, ShownTransaction]

    def explained(self, proof: Proof) -> Explanation:
        """Preorder first, then each block behind its cases."""
        order: list[tuple[Proof, tuple[Step, ...], list[int]]] = []
        waiting: list[tuple[Proof, tuple[Step, ...], int]] = [(proof, (), -1)]
        while waiting:
            block, around, parent = waiting.pop()
            steps = (*around, *block.steps)
            if parent >= 0:
                order[parent][2].append(len(order))
            order.append((block, steps, []))
            waiting += [(case, steps, len(order) - 1) for case in reversed(block.cases or ())]
        done: dict[int, tuple[Explanation, set[int]]] = {}
        for number in reversed(range(len(order))):
            block, steps, cases = order[number]
            done[number] = self._block(block, steps, [done.pop(case) for case in cases])
        return done[0][0]

    def _block(
        self, block: Proof, steps: Sequence[Step], cases: Sequence[tuple[Explanation, set[int]]]
    ) -> tuple[Explanation, set[int]]:
        """(what is told of it, the steps that it needs of the blocks around)."""
        needed = set(block.cycle).union(*(needs for _, needs in cases))
        for number in range(len(steps) - 1, -1, -1):
            if number in needed:
                needed |= set(steps[number].path)
        own = len(steps) - len(block.steps)
        if own and block.steps[:1] and block.steps[0].because is Because.CASE:
            needed.add(own)
        told = sorted(number for number in needed if number >= own)
        explanation = Explanation(
            name="no order",
            sentences=tuple(self._sentence(steps[number], number) for number in told[:STEPS_TOLD]),
            cycle=tuple(self._sentence(steps[number], number) for number in block.cycle),
            cases=tuple(case for case, _ in cases),
            left_out=max(0, len(told) - STEPS_TOLD),
            transactions=self.transactions,
        )
        return explanation, {number for number in needed if number < own}

    def _sentence(self, step: Step, number: int) -> Sentence:
        reads = step.because in (Because.OVERWRITTEN, Because.OVERWRITES)
        return Sentence(
            kind=step.because.value,
            source=self.names.transaction(step.source // self.names.events),
            target=self.names.transaction(step.target // self.names.events),
            moments=(MOMENTS[step.source % 2], MOMENTS[step.target % 2]) if self.names.has_events else None,
            key=self.names.keys[step.key] if step.key >= 0 else None,
            reader=self.names.transaction(step.reader) if reads else None,
            writer=self.names.transaction(step.writer) if reads else None,
            number=number,
            uses=step.path,
        )


@dataclass(frozen=True, kw_only=True)
class _Words:
    named: Mapping[int, str]
    transactions: Mapping[int, ShownTransaction]
    about: Mapping[str, Container[int]]
    """Keys that the steps are about, and of each what they say was written."""

    def data(self, index: int) -> dict[str, Any]:
        one = self.transactions.get(index)
        if index == INITIAL_INDEX:
            return {
                "name": self.named[index],
                "index": index,
                "process": None,
                "operations": ["nothing is written yet"],
            }
        if one is None:
            return {"name": self.named[index], "index": index, "process": None, "operations": []}
        return {
            "name": self.named[index],
            "index": index,
            "process": one.process,
            "operations": self.operations(one),
        }

    def operations(self, one: ShownTransaction) -> list[str]:
        """In program order."""
        numbers = sorted(range(len(one.operations)), key=lambda number: self._rank(*one.operations[number]))
        told = [one.operations[number] for number in sorted(numbers[:OPERATIONS_TOLD])]
        words = [self._operation(*operation, answered=not one.indefinite) for operation in told]
        more = len(numbers) - len(told)
        return [*words, f"… {more} more"] if more else words

    def _rank(self, f: int, key: str, value: Value) -> int:
        """The less, the more an explanation has to say of it."""
        if key not in self.about:
            return 2
        return 0 if f == R or (isinstance(value, int) and value in self.about[key]) else 1

    def _operation(self, f: int, key: str, value: Value, *, answered: bool) -> str:
        """`r x = 3`, `r x = [1, 2]`, `w x = 3`, `append x 3`."""
        if f == R:
            return f"r {key} = {self._value(key, value)}" if answered else f"r {key}"
        return f"{'append' if f == APPEND else 'w'} {key} {'= ' if f == W else ''}{value}"

    def _value(self, key: str, value: Value) -> str:
        return value_told(value, self.about.get(key, ()))

    def introduced(self, index: int) -> str:
        if index == INITIAL_INDEX:
            return f"{self.named[index]} (before all others): nothing is written yet."
        one = self.transactions.get(index)
        did = f": {', '.join(self.operations(one))}" if one is not None else ""
        unknown = ", outcome unknown" if one is not None and one.indefinite else ""
        return f"{self.named[index]} (at {index}{unknown}){did}."

    def lines(self, explanation: Explanation) -> list[str]:
        """Those of cases behind what they assume; a block as often as it is in the proof, never deeper than that."""
        told: list[str] = []
        for label, one in explanation.blocks():
            for sentence in one.sentences:
                case = f"Case {label}: " if sentence.kind == Because.CASE.value else ""
                told.append(f"{self._numbered(sentence)}{case}{self.sentence(sentence)}.")
            if one.left_out:
                told.append(f"{one.left_out} more steps are in the certificate.")
            if one.cases:
                told.append("There are two cases, and each contradicts itself.")
            else:
                told.append(f"{self._contradiction(one)}{f' in case {label}' if label else ''}.")
        return told

    def _numbered(self, sentence: Sentence) -> str:
        return "" if sentence.number is None else f"({sentence.number}) "

    def _contradiction(self, one: Explanation) -> str:
        around = [
            f"{self.named[edge.source]}{f' {edge.moments[0]}' if edge.moments else ''}"
            for edge in one.cycle
            if edge.moments or edge.source != edge.target
        ]
        if not around:
            return "That is a contradiction"
        around.append(around[0])
        if len(around) > EDGES_TOLD:
            around[EDGES_TOLD // 2 : -EDGES_TOLD // 2] = [f"… {len(around) - EDGES_TOLD} more …"]
        numbers = [str(edge.number) for edge in one.cycle]
        steps = f" ({', '.join(numbers)})" if len(numbers) <= EDGES_TOLD and one.cycle[0].number is not None else ""
        return f"So {' before '.join(around)}{steps}: a contradiction"

    def name(self, index: int | None) -> str:
        return "?" if index is None else self.named.get(index, f"the transaction at {index}")

    def sentence(self, one: Sentence) -> str:
        return _SENTENCES[one.kind](self, one)

    def _of(self, index: int) -> ShownTransaction:
        return self.transactions.get(index) or ShownTransaction(index=index, process=-1)

    def _shown(self, one: Sentence) -> str:
        """Who saw both versions."""
        evidence = None if one.evidence is None else self.transactions.get(one.evidence)
        if evidence is None:
            return ""
        key = one.key or ""
        read = evidence.read(key, one.next_value if self._lists(one) else one.value)
        return f", as {self._by(one)} read {key} as {self._value(key, read)}"

    def _by(self, one: Sentence) -> str:
        return "it" if one.evidence == one.target else self.name(one.evidence)

    def ww(self, one: Sentence) -> str:
        source, target = self.name(one.source), self.name(one.target)
        if self._lists(one):
            text = f"{target} appended {one.next_value} to {one.key} behind {source}'s {one.value}"
        else:
            text = f"{target} wrote {one.key} = {one.next_value} over {source}'s {one.value}"
        return text + self._shown(one)

    def wr(self, one: Sentence) -> str:
        source, target = self.name(one.source), self.name(one.target)
        if self._lists(one):
            read = self._read(one.target, one.key or "", one.value)
            return f"{target} read {one.key} as {read}, where {source} had appended {one.value}"
        return f"{target} read {one.key} as {one.value}, which {source} wrote"

    def rw(self, one: Sentence) -> str:
        source, target = self.name(one.source), self.name(one.target)
        if not self._lists(one):
            saw = "null, which it is before any write" if one.value is None else str(one.value)
            return f"{source} read {one.key} as {saw}, and {target} wrote {one.next_value} over that{self._shown(one)}"
        read = self._read(one.source, one.key or "", one.value)
        text = f"{source} did not see {target}'s append of {one.next_value} to {one.key}, because it read {read}"
        if one.evidence is None or one.evidence == one.source:
            return text
        return f"{text} and {one.next_value} comes next in the order that {self.name(one.evidence)} read"

    def _lists(self, one: Sentence) -> bool:
        both = (self._of(one.source), self._of(one.target))
        return any(f == APPEND and key == one.key for told in both for f, key, _ in told.operations)

    def ordered_in_process(self, one: Sentence) -> str:
        process = self._of(one.source).process
        return f"{self.name(one.source)} was before {self.name(one.target)} in process {process}{self._moments(one)}"

    def ended(self, one: Sentence) -> str:
        return f"{self.name(one.source)} ended before {self.name(one.target)} began{self._moments(one)}"

    def initial(self, one: Sentence) -> str:
        return f"{self.name(one.target)} is behind the initial transaction {self.name(one.source)}"

    def inside(self, one: Sentence) -> str:
        return f"{self.name(one.source)} begins before it commits"

    def read(self, one: Sentence) -> str:
        return f"{self._reads(one.target, one.source, one.key or '')}, so {self._before(one)}"

    def known(self, one: Sentence) -> str:
        wrote = self._of(one.target).wrote(one.key or "")
        return f"{self.name(one.target)} {wrote} behind what {self.name(one.source)} appended, so {self._before(one)}"

    def overwritten(self, one: Sentence) -> str:
        """The step is u before w: r saw u, and reads from w."""
        key = one.key or ""
        wrote = "" if one.source == INITIAL_INDEX else f", which {self._of(one.source).wrote(key)},"
        reader = self.name(one.reader)
        seen = f"commits before {reader} begins" if one.moments else f"precedes {reader}"
        reads = self._reads(one.reader, one.writer, key)
        return f"{self.name(one.source)}{wrote} {seen}{self._steps(one)}, and {reads}: so {self._before(one)}"

    def overwrites(self, one: Sentence) -> str:
        """The step is r before u: u follows w, which r reads from."""
        key, writer = one.key or "", self.name(one.writer)
        follows = f"follows {writer}{self._steps(one)}"
        if one.moments and one.writer != INITIAL_INDEX:
            follows = f"commits after {writer} began{self._steps(one)}, so after it committed, for both wrote {key}"
        wrote = f"{self.name(one.target)}, which {self._of(one.target).wrote(key)},"
        return f"{wrote} {follows}, and {self._reads(one.reader, one.writer, key)}: so {self._before(one)}"

    def exclusive(self, one: Sentence) -> str:
        began = f"{self.name(one.source)} begins before {self.name(one.target)} commits{self._steps(one)}"
        return f"{began}, and both wrote {one.key}: so {self._before(one)}"

    def case(self, one: Sentence) -> str:
        text = f"suppose that {self.name(one.source)} wrote {one.key} before {self.name(one.target)}"
        return f"{text}: {self._before(one)}" if one.moments else text

    def _reads(self, reader: int | None, writer: int | None, key: str) -> str:
        written = None if writer is None else self._of(writer).written(key)
        told = self._read(reader, key, written)
        by = "" if writer == INITIAL_INDEX else f" from {self.name(writer)}"
        return f"{self.name(reader)} reads {key}{by} as {told}"

    def _read(self, reader: int | None, key: str, value: int | None) -> str:
        one = None if reader is None else self.transactions.get(reader)
        return "?" if one is None else self._value(key, one.read(key, value))

    def _before(self, one: Sentence) -> str:
        if one.moments is None:
            return f"{self.name(one.source)} comes before {self.name(one.target)}"
        return f"{self.name(one.source)} {one.moments[0]} before {self.name(one.target)} {one.moments[1]}"

    def _moments(self, one: Sentence) -> str:
        return f", so {self._before(one)}" if one.moments else ""

    def _steps(self, one: Sentence) -> str:
        return f" ({', '.join(map(str, one.uses))})" if one.uses else ""


_SENTENCES: Mapping[str, Callable[[_Words, Sentence], str]] = {
    Dependency.WW.name.lower(): _Words.ww,
    Dependency.WR.name.lower(): _Words.wr,
    Dependency.RW.name.lower(): _Words.rw,
    Dependency.PROCESS.name.lower(): _Words.ordered_in_process,
    Dependency.REALTIME.name.lower(): _Words.ended,
    Because.SESSION.value: _Words.ordered_in_process,
    Because.INITIAL.value: _Words.initial,
    Because.INSIDE.value: _Words.inside,
    Because.READ.value: _Words.read,
    Because.KNOWN.value: _Words.known,
    Because.OVERWRITTEN.value: _Words.overwritten,
    Because.OVERWRITES.value: _Words.overwrites,
    Because.EXCLUSIVE.value: _Words.exclusive,
    Because.CASE.value: _Words.case,
}
