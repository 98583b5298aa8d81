"""Why a cycle is one, and why no order explains a history, as data: `render` puts it into words.

Transactions are called T1, T2 … in the order in which they appear, T0 the initial one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from checkers.transactions.evidence.shown_transactions import ShownTransaction

INITIAL_INDEX = -1
"""Stands for the history index of the initial transaction's invocation."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One step from a transaction to another one."""

    kind: str
    """The name of a Dependency for an edge, of a Because for a step, in small letters."""
    source: int
    """The history index of the invocation, or INITIAL_INDEX. All transactions below are named so."""
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
    """The number of a step that others use."""
    uses: tuple[int, ...] = ()
    """The numbers of the steps that it follows from."""
    moments: tuple[str, str] | None = None
    """Which event of the source comes before which one of the target, if begin and commit are two events."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Sentences, each for one step. Those of `cycle` lead back to where they began."""

    name: str
    sentences: tuple[Sentence, ...]
    cycle: tuple[Sentence, ...] = ()
    cases: tuple[Explanation, ...] = ()
    left_out: int = 0
    """How many steps are needed but not among the sentences."""
    transactions: Mapping[int, ShownTransaction]

    @property
    def named(self) -> Mapping[int, str]:
        """History index -> T1, T2 … in order of appearance; T0 is the initial transaction."""
        names: dict[int, str] = {INITIAL_INDEX: "T0"}
        for sentence in self.all_sentences():
            for index in (sentence.source, sentence.target, sentence.reader, sentence.writer, sentence.evidence):
                if index is not None:
                    names.setdefault(index, f"T{len(names)}")
        return names

    @property
    def about(self) -> Mapping[str, set[int]]:
        """Key -> the values of it that the sentences name."""
        about: dict[str, set[int]] = {}
        for sentence in self.all_sentences():
            if sentence.key is None:
                continue
            ends = {sentence.source, sentence.target, sentence.writer} & self.transactions.keys()
            written = (self.transactions[index].written(sentence.key) for index in ends if index is not None)
            values = (*written, sentence.value, sentence.next_value)
            about.setdefault(sentence.key, set()).update(value for value in values if value is not None)
        return about

    def all_sentences(self) -> Iterator[Sentence]:
        for _, block in self.blocks():
            yield from block.sentences
            yield from block.cycle

    def blocks(self) -> Iterator[tuple[str, Explanation]]:
        """This block and all cases within it, in preorder, each with its name: 1, 1.1, 1.2, 2 …"""
        waiting = [("", self)]
        while waiting:
            label, block = waiting.pop()
            yield label, block
            within = f"{label}." if label else ""
            waiting += [(f"{within}{number}", case) for number, case in reversed([*enumerate(block.cases, 1)])]
