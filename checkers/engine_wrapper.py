"""An engine that passes everything on to another one. A subclass overrides the methods that it changes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from checkers.api.plan import Dataset, Engine, Kernel, Matching
from checkers.history_batches import Source
from harness.record.history import COLUMNS


@dataclass(frozen=True)
class EngineAround:
    engine: Engine

    @property
    def name(self) -> str:
        return self.engine.name

    def history(self, source: Source, columns: tuple[str, ...] = COLUMNS) -> Dataset:
        return self.engine.history(source, columns)

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        return self.engine.mapped(source, kernel, schema)

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        return self.engine.grouped(source, keys, kernel, schema)

    def completed(self, source: Dataset, matching: Matching) -> AbstractContextManager[Dataset]:
        return self.engine.completed(source, matching)

    def union(self, left: Dataset, right: Dataset) -> Dataset:
        return self.engine.union(left, right)

    def kept(self, source: Dataset) -> AbstractContextManager[Dataset]:
        return self.engine.kept(source)

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        return self.engine.gather(source, limit)
