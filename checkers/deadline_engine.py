"""An engine on which plans end in time.

Searches end at a deadline, and keep what they had established by then (`checkers.search_budget`). Work that takes time
in proportion to the history goes on after it, because it is usually done soon, but only for as long as a user waits. So
each kernel knows the deadline, and none begins later than GRACE_S after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from checkers.api.plan import Dataset, Kernel, Matching
from checkers.engine_wrapper import EngineAround
from checkers.search_budget import TimeIsUp, require_time, searching_until

T = TypeVar("T")


@dataclass(frozen=True)
class EngineInTime(EngineAround):
    """Another engine, whose plans raise TimeIsUp if they would go on for too long."""

    until: float
    """When searches are over, in seconds since the epoch, which all workers agree on."""

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        return self.engine.mapped(source, self._in_time(kernel), schema)

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        return self.engine.grouped(source, keys, self._in_time(kernel), schema)

    def completed(self, source: Dataset, matching: Matching) -> AbstractContextManager[Dataset]:
        in_time = replace(matching, split=self._in_time(matching.split), kernel=self._in_time(matching.kernel))
        return _entered_in_time(self.engine.completed(source, in_time))

    def kept(self, source: Dataset) -> AbstractContextManager[Dataset]:
        return _entered_in_time(self.engine.kept(source))

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        with _unwrap_time_is_up():
            return self.engine.gather(source, limit)

    def _in_time(self, kernel: Callable[[pa.Table], T]) -> Callable[[pa.Table], T]:
        return partial(run_in_time, kernel=kernel, until=self.until)


def run_in_time(rows: pa.Table, *, kernel: Callable[[pa.Table], T], until: float) -> T:
    """Kernel: runs another one, which may ask for the deadline. Raises TimeIsUp."""
    with searching_until(until):
        require_time()
        return kernel(rows)


@contextmanager
def _entered_in_time(kept: AbstractContextManager[Dataset]) -> Iterator[Dataset]:
    with ExitStack() as held:
        with _unwrap_time_is_up():
            dataset = held.enter_context(kept)
        yield dataset


@contextmanager
def _unwrap_time_is_up() -> Iterator[None]:
    """Raises TimeIsUp in place of the exception that an engine makes of it on a worker."""
    try:
        yield
    except TimeIsUp:
        raise
    except Exception as error:
        if TimeIsUp.__name__ in str(error):
            raise TimeIsUp from error
        raise
