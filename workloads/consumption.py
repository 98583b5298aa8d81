"""Groups of consumers: what is sent is consumed by every group, however members and nodes come and go.

Operations. Each client is a producer (key: `topic/queue`; every message is a number that is sent at most once) or plays
one member of a group after the other:
- `send` {message}: ok with the queue offset it got.
- `join` {group, model, mode, limit}: ok with the name of the member, which from now on gets messages. Where members pop
  the mode is `popping`: what is not acknowledged within `POP_INVISIBLE_S` comes again, and offsets say nothing.
- `consume` {group}: ok with the next messages that the member is given, or none. From here on it consumes them. Each
  has the queue and offset that it comes from (`topic/queue`, or `retry/…` for what comes again), and its tries so far.
- `finish` {group, member, messages, outcome}: it has consumed them with `success`, or failed, and they come again
  `later`; after `limit` tries more than the first a message becomes a dead letter.
- `leave` {group}: the member goes, and leaves everything in order. `crash` {group}: it is gone, with what it had.
- `committed` {group} (key: the queue): ok with the offset up to which the group has consumed the queue.
- At the end, for each group (where queues are not divided: for each member): `consume` and `finish` until `settled`
  {group} is ok: all that its queues hold is consumed. `dead-letters` {group}: ok with all of the group's.

The promises (`checkers.consumption`): every acknowledged message is consumed by every group, or becomes its dead letter
after as many tries as were allowed; a group's offset never passes over what it has not consumed; in order, nothing is
consumed before what lies before it, and no queue by two members at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from checkers.api.plan import Checker
from checkers.consumption import ConsumptionChecker, Mode, Model
from checkers.consumption.rows import CONSUMPTION, EVIDENCE, REPEATS
from harness.bounds import Bounds
from harness.draw import Draw
from harness.errors import UsageError
from harness.generator import PENDING, Context, Emission, Generator, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload
from workloads.log import OK_SHARE, RETRY_S, queue_key

LEAVES, CRASHES = 0.015, 0.015
"""Shares of what a member does: leaving its group, and crashing."""
ASKS = 0.15
"""Share of what producers do that is a question how far a group has come."""
HOPELESS_OF = 16
"""One of so many messages fails at every consumer, in a storm in which consumption fails at all."""
SETTLING_S = 3.0
POPPED_SETTLING_S = 10.0
"""A member that pops has to get nothing for much longer than `POP_INVISIBLE_S`."""
POP_INVISIBLE_S = 2.0
"""So long what was popped is to be one member's."""
ATTEMPTS = 120
"""So many failures and vain looks of one drain, and it is given up as incomplete."""


@dataclass(frozen=True, kw_only=True)
class ConsumptionSettings:
    message_model: Model = Model.CLUSTERING
    """`clustering`: the members of a group divide the queues. `broadcasting`: each gets everything."""
    orderly: bool = False
    """Members consume each queue in its order."""
    popping: bool = False
    """Members pop what they consume: an acknowledgement for each message, no offsets."""
    retries: Annotated[float, Bounds(0, 0.9)] = 0.2
    """The share of first consumptions that fail."""
    limit: Annotated[int, Bounds(0, 16)] = 2
    """How often a message is tried after the first time."""
    queues: Annotated[int, Bounds(1, 16)] = 4
    groups: Annotated[int, Bounds(1, 8)] = 2
    members: Annotated[int, Bounds(1, 16)] = 3
    """How many members each group has; less where there are fewer clients."""

    def __post_init__(self) -> None:
        if self.orderly and self.message_model is Model.BROADCASTING:
            raise UsageError(
                "orderly with message_model=broadcasting: expected one of them, for in order each queue is one member's"
            )
        if self.popping and (self.orderly or self.message_model is Model.BROADCASTING):
            raise UsageError(
                "popping with orderly or message_model=broadcasting: expected popping alone, for what is popped is any "
                "member's, and given in no order"
            )

    @property
    def mode(self) -> Mode:
        if self.popping:
            return Mode.POPPING
        return Mode.ORDERLY if self.orderly else Mode.CONCURRENTLY

    @property
    def settling_s(self) -> float:
        """Between two looks that both have to find that all is consumed."""
        return POPPED_SETTLING_S if self.popping else SETTLING_S

    def member_threads(self, concurrency: int) -> int:
        """The first so many clients are members; of several, at least one in four is a producer."""
        return min(self.groups * self.members, max(1, concurrency - max(1, concurrency // 4)))

    def group_of(self, thread: int) -> str:
        return f"g{thread % self.groups}"

    def joining(self, group: str) -> Operation:
        return _of_group("join", group, model=self.message_model.value, mode=self.mode.value, limit=self.limit)


def _of_group(f: str, group: str, **value: Any) -> Operation:
    return invoke(f, {"group": group, **value})


@dataclass(frozen=True, slots=True)
class Member:
    """What one thread plays just now."""

    process: int
    is_member: bool = False
    name: str | None = None
    """Its name as a member."""
    in_hand: tuple[dict[str, Any], ...] = ()
    """Messages that it consumes."""

    def after(self, event: Operation) -> Member:
        if event.process != self.process:
            return Member(event.process).after(event)
        if event.type == "info" or event.f in ("leave", "crash"):
            return Member(event.process)
        if event.f == "join":
            value = event.value or {}
            return replace(self, is_member=event.type == "ok", name=value.get("member"))
        if event.f == "consume" and event.type == "ok":
            return replace(self, in_hand=tuple((event.value or {}).get("messages") or ()))
        return replace(self, in_hand=()) if event.f == "finish" else self


@dataclass(frozen=True, slots=True)
class Storm:
    """Producers and members, each as soon as it is free; endless."""

    settings: ConsumptionSettings
    base: int
    members: tuple[Member, ...]
    """What each thread plays."""
    number: int = 0
    """The number of the next operation."""

    def op(self, context: Context) -> Emission:
        process = context.free_process()
        if process is None:
            return PENDING, self
        thread, draw = context.thread_of(process), Draw.at(self.base, self.number)
        is_producer = not 0 <= thread < len(self.members) or (context.concurrency == 1 and draw.uniform() < 0.3)
        operation = self._of_producer(draw) if is_producer else self._of_member(draw, thread, process)
        following = Storm(self.settings, self.base, self.members, self.number + 1)
        return operation._replace(process=process, time=context.time), following

    def update(self, context: Context, event: Operation) -> Generator:
        thread = context.thread_of(event.process)
        if event.type == "invoke" or not 0 <= thread < len(self.members):
            return self
        after = self.members[thread].after(event)
        return replace(self, members=(*self.members[:thread], after, *self.members[thread + 1 :]))

    def _of_producer(self, draw: Draw) -> Operation:
        key = queue_key(draw.below(self.settings.queues))
        if self.settings.message_model is Model.CLUSTERING and draw.uniform() < ASKS:
            group = self.settings.group_of(draw.below(len(self.members)))
            return _of_group("committed", group, offset=None)._replace(key=key)
        return invoke("send", {"message": self.number, "offset": None}, key=key)

    def _of_member(self, draw: Draw, thread: int, process: int) -> Operation:
        member, settings = self.members[thread], self.settings
        group = settings.group_of(thread)
        if not member.is_member or member.process != process:
            return settings.joining(group)
        chance = draw.uniform()
        if chance < CRASHES:
            return _of_group("crash", group)
        if member.in_hand:
            return finishing(group, member, "later" if self._fails(draw, member.in_hand) else "success")
        return _of_group("leave" if chance < CRASHES + LEAVES else "consume", group)

    def _fails(self, draw: Draw, messages: tuple[dict[str, Any], ...]) -> bool:
        share = self.settings.retries
        if share == 0:
            return False
        is_hopeless = any(one["message"] % HOPELESS_OF == 0 for one in messages)
        return is_hopeless or draw.uniform() < (share if any(one["tries"] == 0 for one in messages) else share / 2)


def finishing(group: str, member: Member, outcome: str) -> Operation:
    return _of_group("finish", group, member=member.name, messages=list(member.in_hand), outcome=outcome)


@dataclass(frozen=True, slots=True)
class Drain:
    """One member consumes what is left, until nothing is."""

    settings: ConsumptionSettings
    group: str
    member: Member
    is_drained: bool = False
    """Nothing came any more: ask whether that is all."""
    settled_ns: int | None = None
    """When it was all, and nothing came since."""
    is_settled: bool = False
    done: bool = False
    attempts: int = 0
    due_ns: int = 0

    def operation(self, process: int) -> Operation:
        if self.is_settled:
            return _of_group("dead-letters", self.group)
        if not self.member.is_member or self.member.process != process:
            return self.settings.joining(self.group)
        if self.member.in_hand:
            return finishing(self.group, self.member, "success")
        return _of_group("settled" if self.is_drained else "consume", self.group)

    def after(self, event: Operation) -> Drain:
        following = replace(self, member=self.member.after(event), is_drained=False)
        if event.type != "ok":
            due_ns = event.time + round(RETRY_S * 1e9)
            return replace(following._tried(), due_ns=due_ns)
        if event.f == "consume" and not following.member.in_hand:
            return replace(following._tried(), is_drained=True)
        if event.f == "settled":
            return following._settled(event.time)
        if following.member.in_hand:
            following = replace(following, settled_ns=None)
        return replace(following, done=event.f == "dead-letters")

    def _settled(self, time_ns: int) -> Drain:
        """What was sent back may be on its way for a while: it has to be all, and to be so still a little later."""
        if self.settled_ns is None:
            return replace(self, settled_ns=time_ns, due_ns=time_ns + round(self.settings.settling_s * 1e9))
        return replace(self, is_settled=True, done=self.settings.message_model is Model.BROADCASTING)

    def _tried(self) -> Drain:
        return replace(self, attempts=self.attempts + 1, done=self.attempts + 1 >= ATTEMPTS)


@dataclass(frozen=True, slots=True)
class Drains:
    """One a thread, side by side; ends when all are done."""

    drains: tuple[Drain, ...]

    def op(self, context: Context) -> Emission:
        waiting = [(drain.due_ns, thread) for thread, drain in enumerate(self.drains) if not drain.done]
        if not waiting:
            return None
        free = [(due_ns, thread) for due_ns, thread in waiting if context.is_free(thread)]
        if not free:
            return PENDING, self
        due_ns, thread = min(free)
        process = context.processes[thread]
        operation = self.drains[thread].operation(process)
        return operation._replace(process=process, time=max(due_ns, context.time)), self

    def update(self, context: Context, event: Operation) -> Generator:
        thread = context.thread_of(event.process)
        if event.type == "invoke" or not 0 <= thread < len(self.drains):
            return self
        return Drains((*self.drains[:thread], self.drains[thread].after(event), *self.drains[thread + 1 :]))


def generator(settings: ConsumptionSettings, seed: Seed, concurrency: int) -> Generator:
    threads = settings.member_threads(concurrency)
    return Storm(settings, seed.integer(), tuple(Member(-1) for _ in range(threads)))


def final_generator(settings: ConsumptionSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    """Where queues are divided a member for each group suffices."""
    threads = settings.member_threads(concurrency)
    threads = threads if settings.message_model is Model.BROADCASTING else min(threads, settings.groups)
    return Drains(tuple(Drain(settings, settings.group_of(thread), Member(-1)) for thread in range(threads)))


def checkers(settings: ConsumptionSettings) -> dict[str, Checker]:
    return {"consumption": ConsumptionChecker(model=settings.message_model, mode=settings.mode, limit=settings.limit)}


WORKLOAD = Workload(
    name="consumption",
    about="every group consumes what is sent, and passes nothing over",
    settings_type=ConsumptionSettings,
    value_type=CONSUMPTION,
    functions=(
        *("send", "join", "consume", "finish", "leave", "crash", "committed"),
        *("settled", "dead-letters"),
    ),
    repeats=REPEATS,
    evidence=EVIDENCE,
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"send": 20, "consume": 20},
    required_share={"send": OK_SHARE},
    explored={
        "message_model": ("broadcasting",),
        "orderly": (True,),
        "popping": (True,),
        "retries": (0.0, 0.5),
        "limit": (0, 4),
        "queues": (1, 2, 8),
        "groups": (1,),
        "members": (1, 2, 6),
    },
)
