"""Each step of an explanation as a sentence: `T2 read x as [1, 2], where T1 had appended 2`."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.values_in_words import list_in_words
from checkers.transactions.evidence.explanation import INITIAL_INDEX, Explanation, Sentence
from checkers.transactions.evidence.proof import Because
from checkers.transactions.evidence.shown_transactions import ShownTransaction, Value


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """The sentences of one explanation, which share the names of its transactions."""

    named: Mapping[int, str]
    transactions: Mapping[int, ShownTransaction]
    about: Mapping[str, Container[int]]
    """The keys that the steps are about, and for each the values that the steps name."""

    @classmethod
    def of(cls, explanation: Explanation) -> Sentences:
        return cls(named=explanation.named, transactions=explanation.transactions, about=explanation.about)

    def sentence(self, one: Sentence) -> str:
        return _SENTENCES[one.kind](self, one)

    def name(self, index: int | None) -> str:
        return "?" if index is None else self.named.get(index, f"the transaction at {index}")

    def value(self, key: str, value: Value) -> str:
        """A value in words. Of a long list only the ends and the elements that the explanation is about are shown."""
        if value is None:
            return "null"
        return list_in_words(value, self.about.get(key, ())) if isinstance(value, tuple) else str(value)

    def ww(self, one: Sentence) -> str:
        source, target = self.name(one.source), self.name(one.target)
        if self._lists(one):
            text = f"{target} appended {one.next_value} to {one.key} after {source}'s {one.value}"
        else:
            text = f"{target} wrote {one.key} = {one.next_value} over {source}'s {one.value}"
        return text + self._seen_by(one)

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
            return (
                f"{source} read {one.key} as {saw}, and {target} wrote {one.next_value} over that{self._seen_by(one)}"
            )
        read = self._read(one.source, one.key or "", one.value)
        text = f"{source} did not see {target}'s append of {one.next_value} to {one.key}, because it read {read}"
        if one.evidence is None or one.evidence == one.source:
            return text
        return f"{text} and {one.next_value} comes next in the order that {self.name(one.evidence)} read"

    def ordered_in_process(self, one: Sentence) -> str:
        process = self._of(one.source).process
        return f"{self.name(one.source)} was before {self.name(one.target)} in process {process}{self._moments(one)}"

    def ended(self, one: Sentence) -> str:
        return f"{self.name(one.source)} ended before {self.name(one.target)} began{self._moments(one)}"

    def initial(self, one: Sentence) -> str:
        return f"{self.name(one.target)} comes after the initial transaction {self.name(one.source)}"

    def inside(self, one: Sentence) -> str:
        return f"{self.name(one.source)} begins before it commits"

    def read(self, one: Sentence) -> str:
        return f"{self._reads(one.target, one.source, one.key or '')}, so {self._before(one)}"

    def version_order(self, one: Sentence) -> str:
        wrote = self._of(one.target).wrote(one.key or "")
        return f"{self.name(one.target)} {wrote} after what {self.name(one.source)} appended, so {self._before(one)}"

    def overwritten(self, one: Sentence) -> str:
        """The step is u before w: r saw u, and reads from w."""
        key = one.key or ""
        wrote = "" if one.source == INITIAL_INDEX else f", which {self._of(one.source).wrote(key)},"
        reader = self.name(one.reader)
        seen = f"commits before {reader} begins" if one.moments else f"precedes {reader}"
        reads = self._reads(one.reader, one.writer, key)
        return f"{self.name(one.source)}{wrote} {seen}{_steps(one)}, and {reads}: so {self._before(one)}"

    def overwrites(self, one: Sentence) -> str:
        """The step is r before u: u follows w, which r reads from."""
        key, writer = one.key or "", self.name(one.writer)
        follows = f"follows {writer}{_steps(one)}"
        if one.moments and one.writer != INITIAL_INDEX:
            follows = f"commits after {writer} began{_steps(one)}, so after it committed, because both wrote {key}"
        wrote = f"{self.name(one.target)}, which {self._of(one.target).wrote(key)},"
        return f"{wrote} {follows}, and {self._reads(one.reader, one.writer, key)}: so {self._before(one)}"

    def exclusive(self, one: Sentence) -> str:
        began = f"{self.name(one.source)} begins before {self.name(one.target)} commits{_steps(one)}"
        return f"{began}, and both wrote {one.key}: so {self._before(one)}"

    def case(self, one: Sentence) -> str:
        text = f"suppose that {self.name(one.source)} wrote {one.key} before {self.name(one.target)}"
        return f"{text}: {self._before(one)}" if one.moments else text

    def _of(self, index: int) -> ShownTransaction:
        return self.transactions.get(index) or ShownTransaction(index=index, process=-1)

    def _lists(self, one: Sentence) -> bool:
        return any(self._of(end).appends_to(one.key) for end in (one.source, one.target))

    def _seen_by(self, one: Sentence) -> str:
        """Which transaction saw both versions."""
        evidence = None if one.evidence is None else self.transactions.get(one.evidence)
        if evidence is None:
            return ""
        key = one.key or ""
        read = evidence.read(key, one.next_value if self._lists(one) else one.value)
        by = "it" if one.evidence == one.target else self.name(one.evidence)
        return f", as {by} read {key} as {self.value(key, read)}"

    def _reads(self, reader: int | None, writer: int | None, key: str) -> str:
        written = None if writer is None else self._of(writer).written(key)
        by = "" if writer == INITIAL_INDEX else f" from {self.name(writer)}"
        return f"{self.name(reader)} reads {key}{by} as {self._read(reader, key, written)}"

    def _read(self, reader: int | None, key: str, value: int | None) -> str:
        one = None if reader is None else self.transactions.get(reader)
        return "?" if one is None else self.value(key, one.read(key, value))

    def _before(self, one: Sentence) -> str:
        if one.moments is None:
            return f"{self.name(one.source)} comes before {self.name(one.target)}"
        return f"{self.name(one.source)} {one.moments[0]} before {self.name(one.target)} {one.moments[1]}"

    def _moments(self, one: Sentence) -> str:
        return f", so {self._before(one)}" if one.moments else ""


def _steps(one: Sentence) -> str:
    return f" ({', '.join(map(str, one.uses))})" if one.uses else ""


_SENTENCES: Mapping[str, Callable[[Sentences, Sentence], str]] = {
    Dependency.WW.name.lower(): Sentences.ww,
    Dependency.WR.name.lower(): Sentences.wr,
    Dependency.RW.name.lower(): Sentences.rw,
    Dependency.PROCESS.name.lower(): Sentences.ordered_in_process,
    Dependency.REALTIME.name.lower(): Sentences.ended,
    Because.SESSION.value: Sentences.ordered_in_process,
    Because.INITIAL.value: Sentences.initial,
    Because.INSIDE.value: Sentences.inside,
    Because.READ.value: Sentences.read,
    Because.VERSION_ORDER.value: Sentences.version_order,
    Because.OVERWRITTEN.value: Sentences.overwritten,
    Because.OVERWRITES.value: Sentences.overwrites,
    Because.EXCLUSIVE.value: Sentences.exclusive,
    Because.CASE.value: Sentences.case,
}
