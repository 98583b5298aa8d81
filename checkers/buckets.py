"""How finely a history is cut for grouping, and the steps that group it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from checkers.api.plan import CheckRequest, Dataset, Engine
from checkers.history_batches import history_rows

BUCKET_ROWS = 400_000
"""How many rows of a history a bucket has. A kernel's memory is a small multiple of that, whatever the history's
size."""


def bucket_count(rows: int) -> int:
    """The number of buckets for a history of so many rows. It does not depend on the machine, so every engine cuts
    alike."""
    return max(1, -(-rows // BUCKET_ROWS))


Step = tuple[Callable[..., pa.Table], pa.Schema]
"""A kernel with the keyword `buckets`, which is how many there are, and the schema of what it makes."""


def in_buckets(request: CheckRequest, engine: Engine, columns: tuple[str, ...], first: Step, *others: Step) -> Dataset:
    """The result of these steps on a history: the first kernel gets each batch, and each other kernel all rows that the
    one before it put into a bucket."""
    buckets = bucket_count(history_rows(request.history))
    kernel, schema = first
    rows = engine.mapped(engine.history(request.history, columns), partial(kernel, buckets=buckets), schema)
    for kernel, schema in others:
        rows = engine.grouped(rows, ("bucket",), partial(kernel, buckets=buckets), schema)
    return rows
