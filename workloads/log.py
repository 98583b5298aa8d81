"""A log, as RocketMQ and Kafka keep one: producers send to queues, consumers poll them in order.

Operations (key: `topic/queue`; every message is a number that is sent at most once):
- `send` {message}: ok with the queue offset it got.
- `poll` {}: the next messages of that queue for this consumer, from the master or from any replica; ok with the
  messages in order, and the offset that the next poll will ask from. A logical process is one consumer of a `group`,
  those of one client after the other; it begins on a queue where its group's committed offset says, and tells that
  in its first poll (`resumed`). A poll commits what earlier polls have returned, never more.
- `final-poll` {offset}: after the storm has healed, each queue is read from 0 to its end at every replica
  (`node` says which). `caught-up` {offset}: ok if that is the end, at the master as well.

The promises: what was acknowledged is read in the end; no message that certainly was not sent is read; one
offset holds one message, at every replica; consumers and their groups pass nothing over; producers' sends are in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from checkers.log import LogChecker
from checkers.log.rows import EVIDENCE, LOG_MESSAGES, REPEATS
from harness.bounds import Bounds
from harness.draw import Draw
from harness.errors import UsageError
from harness.generator import PENDING, Context, Emission, Generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload

TOPIC = "storm"
RETRY_S = 0.5
OK_SHARE = 0.05
"""Of sends and polls. In 40 healthy storms of 20 s with all faults of the simulator at once the least share was 0.18 of
sends and 0.23 of polls (seeds 39 and 22), their medians 0.7 and 0.95: while a master is elected, sends
fail at once and many. A third of that least still leaves something to be wrong."""
ATTEMPTS = 60
"""So many failed final reads of one queue at one replica in a row, and the reading is given up as incomplete."""


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    queues: Annotated[int, Bounds(1, 16)] = 4
    """Of the topic's queues, the first so many."""
    send_share: Annotated[float, Bounds(0, 1)] = 0.5
    """Share of sends among the operations of the storm."""

    def __post_init__(self) -> None:
        if not 0 < self.send_share < 1:
            raise UsageError(f"send_share must lie between 0 and 1, got {self.send_share}")


def queue_key(queue: int) -> str:
    return f"{TOPIC}/{queue}"


@dataclass(frozen=True, slots=True)
class FinalRead:
    """How far one queue has been read at one replica."""

    key: str
    node: str
    position: int = 0
    due_ns: int = 0
    failures: int = 0
    process: int | None = None
    """Who reads just now."""
    at_end: bool = False
    """Nothing came after `position`: ask whether this is the end."""
    done: bool = False

    def operation(self) -> Operation:
        value = {"message": None, "offset": self.position, "messages": None}
        f = "caught-up" if self.at_end else "final-poll"
        return invoke(f, value, key=self.key)._replace(node=self.node)

    def after(self, event: Operation) -> FinalRead:
        if event.type == "ok" and event.f == "caught-up":
            return replace(self, process=None, done=True)
        if event.type == "ok":
            assert event.value is not None
            ended = not event.value["messages"]
            return replace(
                self,
                process=None,
                position=event.value["offset"],
                at_end=ended,
                failures=0 if not ended else self.failures,
            )
        failures = self.failures + 1
        due_ns = event.time + round(RETRY_S * 1e9)
        return replace(self, process=None, at_end=False, failures=failures, due_ns=due_ns, done=failures >= ATTEMPTS)


@dataclass(frozen=True, slots=True)
class FinalReads:
    """All queues at all replicas, side by side as far as threads are free; ends when all are done."""

    reads: tuple[FinalRead, ...]

    def op(self, context: Context) -> Emission:
        if all(read.done for read in self.reads):
            return None
        waiting = [(read.due_ns, i) for i, read in enumerate(self.reads) if not read.done and read.process is None]
        process = context.free_process()
        if not waiting or process is None:
            return PENDING, self
        due_ns, position = min(waiting)
        operation = self.reads[position].operation()._replace(process=process, time=max(due_ns, context.time))
        return operation, self._with(position, replace(self.reads[position], process=process))

    def update(self, context: Context, event: Operation) -> Generator:
        if event.type == "invoke":
            return self
        for position, read in enumerate(self.reads):
            if read.process == event.process:
                return self._with(position, read.after(event))
        return self

    def _with(self, position: int, read: FinalRead) -> FinalReads:
        return FinalReads((*self.reads[:position], read, *self.reads[position + 1 :]))


def generator(settings: LogSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        key = queue_key(draw.below(settings.queues))
        if draw.uniform() < settings.send_share:
            return invoke("send", {"message": number, "offset": None, "messages": None}, key=key)
        return invoke("poll", None, key=key)

    return drawn(seed, operation)


def final_generator(settings: LogSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    return FinalReads(tuple(FinalRead(queue_key(queue), node) for queue in range(settings.queues) for node in nodes))


WORKLOAD = Workload(
    name="log",
    about="what was acked is kept, at its offset",
    settings_type=LogSettings,
    value_type=LOG_MESSAGES,
    functions=("send", "poll", "final-poll", "caught-up", "txn"),
    repeats=REPEATS,
    evidence=EVIDENCE,
    checkers=lambda settings: {"log": LogChecker()},
    generator=generator,
    final_generator=final_generator,
    required_ok={"send": 20, "poll": 20},
    required_share={"send": OK_SHARE, "poll": OK_SHARE},
    explored={"queues": (1, 2, 8), "send_share": (0.3, 0.8)},
)
