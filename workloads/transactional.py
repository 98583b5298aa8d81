"""Transactional messages: what its producer commits is seen, what it rolls back is never seen, however late it ends.

Operations (key: `topic/queue`; every message is a number that is sent at most once):
- `enqueue` {value, commits, is_said}: the message is sent as a half. Its producer commits or rolls back, which is
  decided from the beginning; it says so at once, or leaves it to the system to ask (any client knows the answer). Ok if
  the half is acknowledged and it commits: then it is bound to be seen. A rollback ends as failed, for the message
  certainly will not be seen.
- `dequeue` {}: ok with the `values` that came out; all clients are one group of consumers.
- `drain` {}: ok with all that was left; at the end of a run, once the system has had time to ask about what is open.

The promises (checker `queue`): what commits comes out, at least once, also if its end was never heard of, or by a
master that is none any more; what rolls back, or was refused, never does (`aborted-read`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa

from checkers.api.evidence import any_ok
from checkers.api.plan import Checker
from checkers.completions import members
from checkers.elements.queue import QueueChecker
from checkers.elements.rows import ELEMENTS
from harness.bounds import Bounds
from harness.draw import Draw
from harness.generator import Generator, concat, drawn, invoke, stagger, time_limit
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload
from workloads.final_reads import each_until_ok
from workloads.log import OK_SHARE, queue_key

DECIDED = pa.struct([*ELEMENTS, pa.field("commits", pa.bool_()), pa.field("is_said", pa.bool_())])
"""Elements, with how the transaction of each ends and whether its producer says so by itself."""
LOOK_EVERY_S = 0.05
"""How long it is between two dequeues after the storm, of all clients together."""


@dataclass(frozen=True, kw_only=True)
class TransactionalSettings:
    queues: Annotated[int, Bounds(1, 16)] = 4
    enqueue_share: Annotated[float, Bounds(0.1, 0.9)] = 0.4
    commit_share: Annotated[float, Bounds(0.1, 0.9)] = 0.6
    said_share: Annotated[float, Bounds(0, 1)] = 0.6
    """Share of the transactions whose producer says by itself how they end."""
    ask_s: Annotated[float, Bounds(0, 600)] = 15.0
    """How long the system has for its questions before the final reads."""


def _operation(f: str, queue: int, value: int | None = None, *decided: bool) -> Operation:
    commits, is_said = decided or (None, None)
    given = {"value": value, "values": None, "commits": commits, "is_said": is_said}
    return invoke(f, given, key=queue_key(queue))


def generator(settings: TransactionalSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        queue = draw.below(settings.queues)
        if draw.uniform() < settings.enqueue_share:
            commits, is_said = draw.uniform() < settings.commit_share, draw.uniform() < settings.said_share
            return _operation("enqueue", queue, number, commits, is_said)
        return _operation("dequeue", queue)

    return drawn(seed, operation)


def final_generator(settings: TransactionalSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    """Clients stay, to be asked, until nothing is open; then take what is left."""
    looking = drawn(seed.child("looks"), lambda draw, _: _operation("dequeue", draw.below(settings.queues)))
    drains = each_until_ok(_operation("drain", queue) for queue in range(settings.queues))
    return concat(time_limit(settings.ask_s, stagger(LOOK_EVERY_S, looking, seed=seed.child("pace"))), drains)


def checkers(settings: TransactionalSettings) -> Mapping[str, Checker]:
    return {"queue": QueueChecker(comes_later=True)}


WORKLOAD = Workload(
    name="transactional",
    about="what its producer commits is seen, what it rolls back never is",
    settings_type=TransactionalSettings,
    value_type=DECIDED,
    functions=("enqueue", "dequeue", "drain"),
    any_values=True,
    lists=("dequeue", "drain"),
    puts=("enqueue",),
    repeats=(members("enqueue"),),
    evidence=any_ok("dequeue", "drain"),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"enqueue": 20, "dequeue": 20},
    required_share={"enqueue": OK_SHARE / 2, "dequeue": OK_SHARE},
    explored={"queues": (1, 2), "said_share": (0.2, 0.9)},
)
