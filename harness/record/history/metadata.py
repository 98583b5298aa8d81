"""What lies with a history beside its rows, in the metadata of its table or of its Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def metadata_of(history: Path | pa.Table) -> Mapping[bytes, bytes]:
    """Empty for a file of another kind. Raises OSError."""
    if isinstance(history, pa.Table):
        return history.schema.metadata or {}
    try:
        return pq.read_metadata(history, memory_map=True).metadata or {}
    except pa.ArrowInvalid:
        return {}
