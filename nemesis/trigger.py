"""Triggers: a fault strikes when a node reaches a point, not at a time.

    when alter-proposed          at the very moment: a node that is killed does nothing more, not the rest of its step
    when 3rd alter-proposed      at the third time, counted over all nodes from when the fault is armed on
    after became-master          once the step of the node is over in which it reached the point

The target `it` is the node that reached the point. The text of a trigger is read back as an equal one
(`nemesis/trigger_grammar.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Moment = Literal["when", "after"]

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


@dataclass(frozen=True, slots=True)
class Trigger:
    """The n-th time that a node reaches the point after the fault was armed; n is from 1 on."""

    point: str
    nth: int = 1
    moment: Moment = "when"

    def __str__(self) -> str:
        return f"{self.moment} {self.point}" if self.nth == 1 else f"{self.moment} {ordinal(self.nth)} {self.point}"


def when(point: str, *, nth: int = 1) -> Trigger:
    """At the very moment in which a node reaches the point the n-th time, for `every`."""
    return Trigger(point, nth)


def after(point: str, *, nth: int = 1) -> Trigger:
    """Once the node's step is over in which it reached the point the n-th time, for `every`."""
    return Trigger(point, nth, "after")


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd …"""
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else _ENDINGS.get(number % 10, 'th')}"
