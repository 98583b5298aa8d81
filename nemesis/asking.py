"""What faults have in common that ask the system for something, which takes its time and may refuse."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from harness.administration import ADMINISTER
from harness.environments.environment import Effect, Environment
from harness.errors import OperationError
from harness.membership import KINDS as MEMBERSHIP

ASKING = MEMBERSHIP | {ADMINISTER}
"""Kinds of faults that do: they are joined with no other, strike at no point, and end beside the storm."""
ATTEMPT_TIMEOUT_S = 20.0
"""How long the system may take to do what ends a fault, before it is asked anew."""
PAUSE_S = 0.5
"""How long it is between two attempts."""


class Asking(Protocol):
    """A fault whose end is asked for until it comes."""

    refusal: str
    """What kept it from its end the last time."""

    @property
    def is_open(self) -> bool:
        """Whether there is an end to ask for."""

    @property
    def left(self) -> str:
        """What is wrong where its end never comes."""


async def asked_once(environment: Environment, seconds: float, asking: Awaitable[str], who: str, done: str) -> Effect:
    """Whether the system may have done it, within so long, and its words. `who` was `done` then, as a sentence says."""
    try:
        return Effect(True, await environment.timeline.within(seconds, asking))
    except OperationError as refusal:
        if refusal.error.definite:
            return Effect(False, f"{who} was not {done}: {refusal}")
        return Effect(True, f"whether {who} was {done} is not known: {refusal}")
    except TimeoutError:
        return Effect(True, f"whether {who} was {done} is not known after {seconds:g} s")


async def asked_until_done(fault: Asking, environment: Environment, ask: Callable[[], Awaitable[str]]) -> str:
    """The system's words, how long it took, and what it refused with before."""
    timeline, attempts = environment.timeline, 0
    began_ns = timeline.now_ns()
    while True:
        attempts += 1
        try:
            words = await timeline.within(ATTEMPT_TIMEOUT_S, ask())
            break
        except OperationError as refusal:
            fault.refusal = str(refusal)
        except TimeoutError:
            fault.refusal = f"not done within {ATTEMPT_TIMEOUT_S:g} s"
        await timeline.sleep(PAUSE_S)
    took_s = (timeline.now_ns() - began_ns) / 1e9
    before = f", after {attempts - 1} refusals ({fault.refusal})" if attempts > 1 else ""
    return f"{words} in {took_s:.1f} s{before}"
