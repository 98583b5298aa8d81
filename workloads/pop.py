"""Messages that a group of consumers pops: each comes until it is acknowledged, never too soon, and never after that.

Operations: `send`, `pop`, `ack`, `change`, `drain` and `dead-letters`; what they promise says
`checkers/elements/pop.py`. Every message is a number that is sent once; the key of a send is the queue it goes to, and
a pop takes from any.

A process acknowledges what it was given, one message after the other, but for some: these come again. Of some it
changes the invisible time, to a shorter or a longer one, mostly before it acknowledges and sometimes too late. At the
end of a run all processes pop and acknowledge until nothing has come for longer than any message may be invisible; then
a `drain` that finds nothing says that all that was left has come.

With `orderly` all pops are in order, and say where what they give out lies; what that promises says
`checkers/elements/pop_order.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any

from checkers.all_of import Conjunction
from checkers.api.evidence import shows_members
from checkers.api.plan import Checker
from checkers.completions import members, remembered
from checkers.elements.pop import FUNCTIONS, POPPED, PopChecker
from checkers.elements.pop_order import PopOrderChecker
from harness.bounds import INT64, Bounds
from harness.draw import Draw
from harness.generator import PENDING, Context, Emission, Generator, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload
from workloads.log import OK_SHARE, queue_key

LONGER = (0.5, 2.0, 3.0)
"""A changed invisible time is so many times the usual one."""
LATE_SHARE = 0.3
"""So many of the changes before an acknowledgement come after it instead: consumers renew beside their work."""
SLACK_S = 5.0
"""Messages come so much later at most than their invisible time is over, once all is well."""
POP_EVERY_S = 0.1
"""How long it is between two pops in the end."""
PATIENCE_S = 120.0
"""So long, beside twenty times the longest invisible time, the end may take; then it is given up as incomplete."""


@dataclass(frozen=True, kw_only=True)
class PopSettings:
    queues: Annotated[int, Bounds(1, 16)] = 4
    """Messages are sent to the first so many queues of the topic, and popped from any."""
    send_share: Annotated[float, Bounds(0.05, 0.95)] = 0.6
    """Share of sends among the operations of a process that holds no message; the others are pops."""
    omitted_share: Annotated[float, Bounds(0, 1)] = 0.2
    """Share of the messages that come that are not acknowledged."""
    changed_share: Annotated[float, Bounds(0, 1)] = 0.2
    """Share of the messages that come whose invisible time is changed."""
    orderly: bool = False
    """Messages of a queue are given out in their order: nothing, until all before it is acknowledged."""
    invisible_ms: Annotated[int, Bounds(50, 60_000)] = 1_000
    tolerance_ms: Annotated[int, INT64] = 20
    """A message may come so much too early: the clocks of brokers do not run as fast as the harness's."""

    @property
    def longest_ms(self) -> int:
        return round(self.invisible_ms * max(*LONGER, 1.0))


@dataclass(frozen=True, slots=True)
class Intent:
    """What a process is going to do with a message that it holds."""

    f: str
    message: int
    invisible_ms: int | None = None
    queue: str | None = None
    offset: int | None = None
    """Where an acknowledged message lies, where that was said."""

    def operation(self) -> Operation:
        return _operation(
            self.f, message=self.message, invisible_ms=self.invisible_ms, queue=self.queue, offset=self.offset
        )


Held = Mapping[int, tuple[Intent, ...]]
"""Process -> what it is going to do, in order."""
NOTHING_HELD: Held = MappingProxyType({})


NOTHING: Mapping[str, Any] = MappingProxyType(
    dict.fromkeys(("message", "invisible_ms", "in_order", "queue", "offset", "deliveries"))
)


def _operation(f: str, key: str | None = None, **value: Any) -> Operation:
    return invoke(f, {**NOTHING, **value}, key=key)


def _popping(f: str, settings: PopSettings) -> Operation:
    return _operation(f, invisible_ms=settings.invisible_ms, in_order=settings.orderly)


def _acknowledging(delivery: Mapping[str, Any]) -> Intent:
    return Intent("ack", delivery["message"], queue=delivery.get("queue"), offset=delivery.get("offset"))


def _without(held: Held, process: int) -> Held:
    return {other: intents for other, intents in held.items() if other != process}


def _next(held: Held, process: int) -> tuple[Operation | None, Held]:
    intents = held.get(process, ())
    if not intents:
        return None, held
    rest = {**held, process: intents[1:]} if len(intents) > 1 else _without(held, process)
    return intents[0].operation()._replace(process=process), rest


def _after(held: Held, event: Operation, intended: tuple[Intent, ...]) -> Held:
    """A process of which it is not known what it did is gone, and so is what it held."""
    if event.type == "info":
        return _without(held, event.process)
    return {**held, event.process: (*held.get(event.process, ()), *intended)} if intended else held


def _deliveries(event: Operation) -> list[dict[str, Any]]:
    if event.type != "ok" or event.f not in ("pop", "drain"):
        return []
    assert event.value is not None
    return event.value["deliveries"] or []


@dataclass(frozen=True, slots=True)
class Storm:
    """Sends and pops, and what is to be done with what was popped."""

    settings: PopSettings
    base: int
    number: int = 0
    held: Held = field(default_factory=lambda: NOTHING_HELD)

    def op(self, context: Context) -> Emission:
        process = context.free_process()
        if process is None:
            return PENDING, self
        operation, held = _next(self.held, process)
        if operation is not None:
            return operation._replace(time=context.time), replace(self, held=held)
        draw = Draw.at(self.base, self.number)
        if draw.uniform() < self.settings.send_share:
            key = queue_key(draw.below(self.settings.queues))
            operation = _operation("send", key=key, message=self.number)
        else:
            operation = _popping("pop", self.settings)
        return operation._replace(process=process, time=context.time), replace(self, number=self.number + 1)

    def update(self, context: Context, event: Operation) -> Generator:
        if event.type == "invoke" or event.process < 0:
            return self
        intended = tuple(intent for one in _deliveries(event) for intent in self._intents(one, event.time))
        held = _after(self.held, event, intended)
        return self if held is self.held else replace(self, held=held)

    def _intents(self, delivery: Mapping[str, Any], came_ns: int) -> tuple[Intent, ...]:
        """Other ones each time that a message comes, also where nobody counts how often it came before."""
        message, times = delivery["message"], delivery["times"]
        draw = Draw.at(~self.base, 1_000 * message + (came_ns if times is None else times))
        if draw.uniform() < self.settings.omitted_share:
            return ()
        ack = _acknowledging(delivery)
        if draw.uniform() >= self.settings.changed_share:
            return (ack,)
        changed = Intent("change", message, max(1, round(self.settings.invisible_ms * draw.choice(LONGER))))
        if draw.uniform() < self.settings.omitted_share:
            return (changed,)
        return (ack, changed) if draw.uniform() < LATE_SHARE else (changed, ack)


@dataclass(frozen=True, slots=True)
class Drain:
    """Pops and acknowledges until nothing came for long enough, asks whether that was all, and reads the dead letters.
    It ends when all that was answered, or when it has taken too long."""

    settings: PopSettings
    held: Held = field(default_factory=lambda: NOTHING_HELD)
    in_flight: int = 0
    begun_ns: int | None = None
    busy_ns: int = 0
    """When anything came last, or was not answered."""
    pop_due_ns: int = 0
    is_drained: bool = False
    is_done: bool = False

    def op(self, context: Context) -> Emission:
        begun_ns = context.time if self.begun_ns is None else self.begun_ns
        if self.is_done or context.time > begun_ns + self._patience_ns:
            return None
        this = self if self.begun_ns is not None else replace(self, begun_ns=begun_ns, busy_ns=begun_ns)
        for thread in context.own_idle():
            operation, held = _next(this.held, context.processes[thread])
            if operation is not None:
                return operation._replace(time=context.time), replace(this, held=held)
        process = context.free_process()
        if process is None:
            return PENDING, this
        if this.is_drained or context.time >= this.busy_ns + this._quiet_ns:
            if this.in_flight:
                return PENDING, this
            operation = _operation("dead-letters") if this.is_drained else _popping("drain", self.settings)
            due_ns = max(context.time, this.pop_due_ns)
        else:
            operation = _popping("pop", self.settings)
            due_ns = max(context.time, this.pop_due_ns)
        following = replace(this, pop_due_ns=due_ns + round(POP_EVERY_S * 1e9))
        return operation._replace(process=process, time=due_ns), following

    def update(self, context: Context, event: Operation) -> Generator:
        if event.process < 0:
            return self
        if event.type == "invoke":
            return replace(self, in_flight=self.in_flight + 1)
        acks = tuple(_acknowledging(one) for one in _deliveries(event))
        after = replace(self, in_flight=self.in_flight - 1, held=_after(self.held, event, acks))
        if event.type == "ok" and event.f == "dead-letters":
            return replace(after, is_done=True)
        if event.type == "ok" and event.f == "drain" and not acks:
            return replace(after, is_drained=True)
        is_quiet = event.type == "ok" and event.f == "pop" and not acks
        return after if is_quiet else replace(after, busy_ns=event.time)

    @property
    def _quiet_ns(self) -> int:
        return self.settings.longest_ms * 1_000_000 + round(SLACK_S * 1e9)

    @property
    def _patience_ns(self) -> int:
        return 20 * self.settings.longest_ms * 1_000_000 + round(PATIENCE_S * 1e9)


def generator(settings: PopSettings, seed: Seed, concurrency: int) -> Generator:
    return Storm(settings, seed.integer())


def final_generator(settings: PopSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    return Drain(settings)


def checkers(settings: PopSettings) -> dict[str, Checker]:
    """Where no order is promised nothing says where it lies, and the second has nothing to judge."""
    pop = PopChecker(tolerance_ms=settings.tolerance_ms)
    return {"pop": Conjunction(name="pop", parts=(pop, PopOrderChecker()))}


WORKLOAD = Workload(
    name="pop",
    about="what a group pops comes until it is acknowledged, and not after that",
    settings_type=PopSettings,
    value_type=POPPED,
    timed=True,
    functions=FUNCTIONS,
    repeats=(
        members("send", "ack", of=("message",)),
        remembered("ack", of=("queue", "offset")),
        members("change", of=("message", "invisible_ms")),
        members("pop", "drain", of=("invisible_ms",)),
    ),
    evidence=(shows_members("pop", "deliveries", "that gave something out"),),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"send": 20, "pop": 20},
    required_share={"send": OK_SHARE, "pop": OK_SHARE},
    explored={
        "queues": (1, 2, 8),
        "orderly": (True,),
        "omitted_share": (0.0, 0.6),
        "changed_share": (0.0, 0.6),
        "invisible_ms": (200, 3_000),
    },
)
