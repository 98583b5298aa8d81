"""Histories: what clients saw, as typed columns; durable while a test still runs, checked when read.

    writer = HistoryWriter(run / "history.arrows", value_type)
    writer.append(Operation(0, "invoke", "read", time=17))     # durable within 100 ms
    writer.close()                                             # -> history.parquet

    history = read_history(run / "history.parquet")            # raises MalformedHistory
    for batch in history.batches(("index", "time")): ...

A run killed in mid-air leaves `history.arrows`; `read_history` keeps what is whole of it and
`close_torn` turns that into Parquet. Nothing here decides whether a history is *right*: only whether
it is one.
"""

from harness.record.history.pairing import NO_PARTNER, by_process, pairs, pairs_of_clients
from harness.record.history.reader import History, Recovered, close_torn, read_history, require_history
from harness.record.history.schema import COLUMNS, MalformedHistory, history_schema
from harness.record.history.validation import validate
from harness.record.history.writer import HistoryWriter, table_of

__all__ = [
    "COLUMNS",
    "NO_PARTNER",
    "History",
    "HistoryWriter",
    "MalformedHistory",
    "Recovered",
    "by_process",
    "close_torn",
    "history_schema",
    "pairs",
    "pairs_of_clients",
    "read_history",
    "require_history",
    "table_of",
    "validate",
]
