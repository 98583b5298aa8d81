"""Locks: what one process holds nobody else holds; with fencing, who has lost a lock unseen is refused at its end.

Operations (key: the lock):
- `acquire` {}: ok if the process holds it, with a token as `value` where there are tokens; fail where somebody else
  holds it.
- `release` {}: ok says that the process holds it no more, whether or not it still did: what it may rely on is that
  nobody else held the lock from the acquisition's end to the release's beginning.
With `fencing`: `release` {value: token} succeeds only for the holder of the lock with that token, in one step, and
fails with `lock-lost` otherwise. It stands for all that is done under a lock with its token beside it. Then a lock may
be lost, while its holder is paused, say; but once somebody has a newer token, nothing is done by an older one.

A process holds a lock for `hold_s` on average, asks for none meanwhile, and asks again to release it until it is known
what came of that. A process that is not answered is gone, and what it held is left to the system to free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import pyarrow as pa

from checkers.api.evidence import Evidence
from checkers.api.plan import Checker
from checkers.completions import members
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.objects import MODELS
from harness.bounds import Bounds
from harness.draw import Draw
from harness.errors import ErrorCode
from harness.generator import PENDING, Context, Emission, Generator, as_generator, invoke
from harness.operation import NEMESIS, Operation
from harness.seed import Seed
from harness.workload import Workload

VALUE_TYPE = pa.struct([("value", pa.int64())])
LOCK_LOST = ErrorCode("lock-lost", definite=True)
"""The client that wanted to release a lock by its token does not hold it any more."""


@dataclass(frozen=True, kw_only=True)
class LockSettings:
    locks: Annotated[int, Bounds(1, 100)] = 3
    hold_s: Annotated[float, Bounds(0, 60)] = 1.0
    """So long a process holds a lock on average, from nothing to twice that."""
    fencing: bool = False
    """Tokens decide who may release."""


def lock_key(number: int) -> str:
    return f"l{number}"


@dataclass(frozen=True, slots=True)
class _Held:
    process: int
    key: str
    token: int | None
    due_ns: int
    releasing: bool = False


@dataclass(frozen=True, slots=True)
class _Locks:
    settings: LockSettings
    base: int
    number: int = 0
    held: tuple[_Held, ...] = ()

    def op(self, context: Context) -> Emission:
        free = [context.processes[thread] for thread in context.own_idle() if thread != NEMESIS]
        waiting = [(one.due_ns, one) for one in self.held if not one.releasing and one.process in free]
        due_ns, first = min(waiting, key=lambda pair: pair[0], default=(0, None))
        asking = next((process for process in free if process not in {one.process for one in self.held}), None)
        if first is not None and (due_ns <= context.time or asking is None):
            token = first.token if self.settings.fencing else None
            release = invoke("release", {"value": token}, key=first.key)
            return release._replace(process=first.process, time=max(due_ns, context.time)), self
        if asking is None:
            return PENDING, self
        key = lock_key(Draw.at(self.base, self.number).below(self.settings.locks))
        acquire = invoke("acquire", {"value": None}, key=key)._replace(process=asking, time=context.time)
        return acquire, replace(self, number=self.number + 1)

    def update(self, context: Context, event: Operation) -> Generator:
        mine = next((one for one in self.held if one.process == event.process), None)
        if mine is None:
            return replace(self, held=(*self.held, self._got(event))) if _got(event) else self
        others = tuple(one for one in self.held if one is not mine)
        if event.type == "fail" and event.error != LOCK_LOST.code:
            return replace(self, held=(*others, replace(mine, releasing=False)))
        return replace(self, held=(*others, replace(mine, releasing=True)) if event.type == "invoke" else others)

    def _got(self, event: Operation) -> _Held:
        assert event.key is not None
        hold_s = Draw.at(self.base + 1, event.time + event.process).uniform(0.0, 2.0 * self.settings.hold_s)
        token = (event.value or {}).get("value")
        return _Held(event.process, event.key, token, event.time + round(hold_s * 1e9))


def _got(event: Operation) -> bool:
    return event.f == "acquire" and event.type == "ok"


def generator(settings: LockSettings, seed: Seed, concurrency: int) -> Generator:
    return _Locks(settings, seed.integer())


def final_generator(settings: LockSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    """Nothing: two holders at once were seen by then."""
    return as_generator(None)


def checkers(settings: LockSettings) -> dict[str, Checker]:
    return {"linearizable": Linearizable(MODELS["leased-lock" if settings.fencing else "mutex"])}


WORKLOAD = Workload(
    name="lock",
    about="what one process holds nobody else holds; with fencing, nothing is done by an older token than the newest",
    settings_type=LockSettings,
    value_type=VALUE_TYPE,
    functions=("acquire", "release"),
    repeats=(members("release"),),
    evidence=(Evidence(f="release"), Evidence(f="acquire", at_least=2)),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"acquire": 10, "release": 10},
)
