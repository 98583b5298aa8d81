"""A log, as RocketMQ and Kafka keep one: producers send to queues, consumers poll them in order.

Operations (key: `topic/queue`; every message is a number that is sent at most once):
- `send` {message}: ok with the queue offset it got.
- `poll` {}: the next messages of that queue for this consumer, from the master or from any replica; ok with the
  messages in order, and the offset that the next poll will ask from. A logical process is one consumer of a `group`,
  those of one client after the other; it begins on a queue where its group's committed offset says, and tells that
  in its first poll (`resumed`). A poll commits what earlier polls have returned, never more.
- `final-poll` {offset}: after the storm has healed, each queue is read from 0 to its end at every replica
  (`node` says which), or, where no node shows its own, at the one that serves. `caught-up` {offset}: ok if that is the
  end, at the master as well.
- `send-batch` {txn}: sends of several messages to one queue at once, where `batch_share` is set.
With `tags`, message m has the tag m modulo their number, and a key of its own:
- `filtered-poll` {tag}: what comes next with this tag for a second consumer, from `resumed` up to `offset`, from where
  the next one will ask. `final-filtered-poll` {tag, offset}: the same at every replica in the end, from 0 on.
- `final-look-up` {message}: where the messages stand that have this one's key, at every replica in the end; of messages
  that were read there, and of such as nobody has seen.
With a `move_share`, of a topic whose queues can move from servers to servers:
- `move` {}: have the queue moved, of which nobody else must notice more than that offsets may pass over some where the
  queue goes on. Ok once it is at the new place; several may try at once.
- `final-segments` {}: of which segments the queue consists in the end, as pairs of beginning (`offset`) and end
  (`message`; -1: none yet).
In histories of others:
- `txn` {txn}: sends and polls, each naming its queue, at one moment.
- `assign`, `subscribe`, `crash`, `debug-topic-partitions`: of consumers that choose their queues; what that means for
  their polls is said with these (`harness/jepsen/log_parts.py`).

The promises: what was acknowledged is read in the end; no message that certainly was not sent is read; one
offset holds one message, at every replica; consumers and their groups pass nothing over; producers' sends are in order.
A batch is there as a whole or not at all, filters take away what they should and nothing else, and keys lead to their
messages (`checkers.log.features`). A queue that moves stays one queue (`checkers.log.moves`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from checkers.log import LogChecker
from checkers.log.features import FeaturesChecker
from checkers.log.moves import MovesChecker
from checkers.log.queue_dependencies import Writes
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
"""The share of sends, and of polls, that must be ok. In 40 healthy storms of 20 s with all faults of the simulator at
once the least share was 0.18 of sends and 0.23 of polls (seeds 39 and 22), their medians 0.7 and 0.95: while a master
is elected, sends fail at once and many. A third of that least still leaves something to be wrong."""
LEAST_BATCH, MOST_BATCH = 2, 6
FILTERED_SHARE = 0.5
"""Share of polls that ask for one tag, where messages have tags."""
LOOK_UPS = 20
"""So many of the newest messages are looked up at each replica in the end, as many of all, and as many that are not
there."""
ATTEMPTS = 60
"""So many failed final reads of one queue at one replica in a row, and the reading is given up as incomplete."""


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    queues: Annotated[int, Bounds(1, 16)] = 4
    """The first so many of the topic's queues are used."""
    send_share: Annotated[float, Bounds(0, 1)] = 0.5
    """Share of sends among the operations of the storm."""
    batch_share: Annotated[float, Bounds(0, 1)] = 0.0
    """Share of batches among the sends."""
    tags: Annotated[int, Bounds(0, 8)] = 0
    """How many tags messages have, one each, and a key; then half of the polls are for one of these. 0: none."""

    move_share: Annotated[float, Bounds(0, 0.5)] = 0.0
    """Share of moves of queues among the operations of the storm."""

    writes: Writes = Writes.ISOLATED
    """Whether sends of several transactions may lie between each other; runs have no transactions."""

    def __post_init__(self) -> None:
        if not 0 < self.send_share < 1:
            raise UsageError(f"send_share must lie between 0 and 1, got {self.send_share}")


def queue_key(queue: int) -> str:
    return f"{TOPIC}/{queue}"


@dataclass(frozen=True, slots=True)
class FinalRead:
    """How far one queue has been read at one replica, or at the one that serves."""

    key: str
    node: str | None
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
class FilteredRead:
    """How far one queue has been read by a tag at one replica."""

    key: str
    node: str
    tag: int
    position: int = 0
    due_ns: int = 0
    failures: int = 0
    process: int | None = None
    done: bool = False

    def operation(self) -> Operation:
        value = _value(offset=self.position, tag=self.tag)
        return invoke("final-filtered-poll", value, key=self.key)._replace(node=self.node)

    def after(self, event: Operation) -> FilteredRead:
        if event.type != "ok":
            return _failed(self, event)
        assert event.value is not None
        position = event.value["offset"]
        return replace(self, process=None, position=position, done=position == self.position)


@dataclass(frozen=True, slots=True)
class LookUp:
    """One message looked up by its key at one replica."""

    key: str
    node: str
    message: int
    due_ns: int = 0
    failures: int = 0
    process: int | None = None
    done: bool = False

    def operation(self) -> Operation:
        return invoke("final-look-up", _value(message=self.message), key=self.key)._replace(node=self.node)

    def after(self, event: Operation) -> LookUp:
        return replace(self, process=None, done=True) if event.type == "ok" else _failed(self, event)


@dataclass(frozen=True, slots=True)
class SegmentsRead:
    """Which segments one queue has."""

    key: str
    due_ns: int = 0
    failures: int = 0
    process: int | None = None
    done: bool = False

    def operation(self) -> Operation:
        return invoke("final-segments", _value(), key=self.key)

    def after(self, event: Operation) -> SegmentsRead:
        return replace(self, process=None, done=True) if event.type == "ok" else _failed(self, event)


Read = TypeVar("Read", FilteredRead, LookUp, SegmentsRead)


def _failed(read: Read, event: Operation) -> Read:
    failures = read.failures + 1
    due_ns = event.time + round(RETRY_S * 1e9)
    return replace(read, process=None, failures=failures, due_ns=due_ns, done=failures >= ATTEMPTS)


AnyRead = FinalRead | FilteredRead | LookUp | SegmentsRead


@dataclass(frozen=True, slots=True)
class FinalReads:
    """All queues at all replicas, side by side as far as threads are free; ends when all are done."""

    reads: tuple[AnyRead, ...]

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

    def _with(self, position: int, read: AnyRead) -> FinalReads:
        return FinalReads((*self.reads[:position], read, *self.reads[position + 1 :]))


@dataclass(frozen=True, slots=True)
class FinalChecks:
    """The final reads, and then, at each replica, reads by tag and look-ups of what was read there."""

    reads: Generator
    tags: int
    places: tuple[tuple[str, str], ...]
    """(replica, queue) of all that are read."""
    seen: tuple[tuple[str, str, int], ...] = ()
    """(queue, replica, message)."""
    checks: Generator | None = None

    def op(self, context: Context) -> Emission:
        if self.checks is not None:
            emission = self.checks.op(context)
            return None if emission is None else (emission[0], replace(self, checks=emission[1]))
        emission = self.reads.op(context)
        if emission is None:
            return replace(self, checks=FinalReads(self._checks())).op(context)
        return emission[0], replace(self, reads=emission[1])

    def update(self, context: Context, event: Operation) -> Generator:
        if self.checks is not None:
            return replace(self, checks=self.checks.update(context, event))
        seen = self.seen
        if event.type == "ok" and event.f == "final-poll":
            assert event.value is not None and event.key is not None and event.node is not None
            seen += tuple((event.key, event.node, one["message"]) for one in event.value["messages"])
        return replace(self, reads=self.reads.update(context, event), seen=seen)

    def _checks(self) -> tuple[FilteredRead | LookUp, ...]:
        filtered = [FilteredRead(key, node, tag) for node, key in self.places for tag in range(self.tags)]
        nodes = sorted({node for node, _ in self.places})
        look_ups = [look_up for node in nodes for look_up in self._look_ups(node)]
        return (*filtered, *look_ups)

    def _look_ups(self, node: str) -> list[LookUp]:
        """Of the newest messages, of as many from all of them, and of some that are not there."""
        seen = sorted((message, key) for key, of, message in self.seen if of == node)
        if not seen:
            return []
        chosen = {*seen[-LOOK_UPS:], *seen[:: len(seen) // LOOK_UPS + 1]}
        missing = sorted(set(range(seen[-1][0])) - {message for message, _ in seen})
        chosen |= {(message, seen[0][1]) for message in missing[:: len(missing) // LOOK_UPS + 1]}
        return [LookUp(key, node, message) for message, key in sorted(chosen)]


def generator(settings: LogSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        key = queue_key(draw.below(settings.queues))
        if settings.move_share and draw.uniform() < settings.move_share:
            return invoke("move", _value(), key=key)
        if draw.uniform() < settings.send_share:
            if settings.batch_share and draw.uniform() < settings.batch_share:
                size = LEAST_BATCH + draw.below(MOST_BATCH - LEAST_BATCH + 1)
                return _batch(settings, key, [number * MOST_BATCH + place for place in range(size)])
            message = number * MOST_BATCH if settings.batch_share else number
            return invoke("send", _value(message=message, **_tag(settings, message)), key=key)
        if settings.tags and draw.uniform() < FILTERED_SHARE:
            return invoke("filtered-poll", _value(tag=draw.below(settings.tags)), key=key)
        return invoke("poll", None, key=key)

    return drawn(seed, operation)


def _value(**members: Any) -> dict[str, Any]:
    return {"message": None, "offset": None, "messages": None, **members}


def _tag(settings: LogSettings, message: int) -> dict[str, int]:
    return {"tag": message % settings.tags} if settings.tags else {}


def _batch(settings: LogSettings, key: str, messages: list[int]) -> Operation:
    """With tags, its own one is how many there are: each message has another."""
    parts = [{"f": "send", "key": key, "message": message, "offset": None} for message in messages]
    return invoke("send-batch", _value(txn=parts, **({"tag": settings.tags} if settings.tags else {})), key=key)


def final_generator(settings: LogSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    queues = [queue_key(queue) for queue in range(settings.queues)]
    places = [(node, key) for key in queues for node in nodes]
    moved = settings.queues if settings.move_share else 0
    segments = (SegmentsRead(queue_key(queue)) for queue in range(moved))
    final = [FinalRead(key, node) for node, key in places] or [FinalRead(key, None) for key in queues]
    reads = FinalReads((*segments, *final))
    return FinalChecks(reads, settings.tags, tuple(places)) if settings.tags else reads


def checkers(settings: LogSettings) -> dict[str, LogChecker | FeaturesChecker | MovesChecker]:
    found: dict[str, LogChecker | FeaturesChecker | MovesChecker] = {"log": LogChecker(writes=settings.writes)}
    if settings.tags or settings.batch_share:
        found["log-features"] = FeaturesChecker(settings.tags)
    if settings.move_share:
        found["log-moves"] = MovesChecker()
    return found


WORKLOAD = Workload(
    name="log",
    about="what was acked is kept, at its offset",
    settings_type=LogSettings,
    value_type=LOG_MESSAGES,
    functions=(
        *("send", "poll", "final-poll", "caught-up", "txn"),
        *("send-batch", "filtered-poll", "final-filtered-poll", "final-look-up"),
        *("move", "final-segments"),
        *("assign", "subscribe", "crash", "debug-topic-partitions"),
    ),
    repeats=REPEATS,
    evidence=EVIDENCE,
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"send": 20, "poll": 20},
    required_share={"send": OK_SHARE, "poll": OK_SHARE},
    explored={"queues": (1, 2, 8), "send_share": (0.3, 0.8), "batch_share": (0.5,), "tags": (2,)},
)
