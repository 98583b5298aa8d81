"""Amounts: how badly an impairment strikes, as a fault's text says it: `slow links of b1 delay_ms=120 jitter_ms=30`.

Each is named as the field of the impairment that it becomes. A text without amounts lets them be drawn when the fault
strikes; with one it names all that its verb has, in their order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness.bounds import Bounds

Value = float | int | None
"""What an amount is set to; None is `all`."""
ALL_OF_THEM: Final = "all"
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


@dataclass(frozen=True, slots=True)
class Amount:
    """One of the numbers of an impairment, and between which bounds it can be written."""

    name: str
    bounds: Bounds
    usual: float
    """An example."""
    is_whole: bool = False
    may_be_all: bool = False

    @property
    def element(self) -> str:
        """What stands for it in a form."""
        return f"{self.name}=NUMBER"

    @property
    def example(self) -> str:
        return self.text(int(self.usual) if self.is_whole else self.usual)

    def text(self, value: Value) -> str:
        number = ALL_OF_THEM if value is None else f"{value!r}".removesuffix(".0")
        return f"{self.name}={number}"

    def near(self, number: float, digits: int = 3) -> float | int:
        """The number within the bounds, to so many digits."""
        plain = float(f"{min(max(number, self.bounds.least), self.bounds.most):.{digits}g}")
        plain = min(max(plain, self.bounds.least), self.bounds.most)
        return round(plain) if self.is_whole else plain

    def reads(self, word: str) -> bool:
        """Whether the word is this amount, within its bounds."""
        name, _, number = word.partition("=")
        if name != self.name:
            return False
        if number == ALL_OF_THEM:
            return self.may_be_all
        if not _NUMBER.fullmatch(number) or (self.is_whole and "." in number):
            return False
        return float(number) in self.bounds

    def value(self, word: str) -> Value:
        """Of a word that it reads."""
        number = word.partition("=")[2]
        if number == ALL_OF_THEM:
            return None
        return int(number) if self.is_whole else float(number)


def _amount(name: str, least: float, most: float, usual: float) -> Amount:
    return Amount(name, Bounds(least, most), usual)


def _count(name: str, most: int, usual: int, *, least: int = 1, may_be_all: bool = False) -> Amount:
    return Amount(name, Bounds(least, most), usual, is_whole=True, may_be_all=may_be_all)


AMOUNTS: Mapping[str, Amount] = {
    amount.name: amount
    for amount in (
        _amount("delay_ms", 0, 600_000, 100),
        _amount("jitter_ms", 0, 600_000, 20),
        _amount("share", 0, 0.99, 0.3),
        _count("bytes_per_s", 10**12, 10_000),
        _amount("down_ms", 1, 600_000, 300),
        _amount("up_ms", 1, 600_000, 1_000),
        _amount("gap_ms", 0, 600_000, 500),
        _amount("factor", 1, 1_000_000, 30),
        _count("most", 1_000_000, 1, may_be_all=True),
        _amount("reads", 0, 1, 0.1),
        _amount("writes", 0, 1, 0.1),
        _count("room_bytes", 10**12, 1_000, least=0),
        _amount("left_mb", 0, 1_000_000, 8),
        _count("one_in", 1_000_000, 5),
        _count("bits", 10_000, 1),
        _count("files", 1_000, 1),
        _amount("after_s", 0.001, 86_400, 2),
        _amount("callback_us", 0, 1_000_000, 100),
        _amount("stretch", 1, 1_000, 2),
        _amount("offset_ms", -(10**9), 10**9, 1_000),
        _amount("period_ms", 1, 600_000, 100),
    )
}
"""Name -> amount; those of one name mean the same in all impairments."""
BY_ELEMENT: Mapping[str, Amount] = {amount.element: amount for amount in AMOUNTS.values()}
