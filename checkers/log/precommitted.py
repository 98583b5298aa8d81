"""Transactions that were given what they sent themselves, before it was committed.

This is only wrong if sends of several transactions may be interleaved: then a message has no place in the log's order,
and must not be given to any client, before the transaction that sent it has ended.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.api.findings import Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import OK, witness_order
from checkers.log.rows import is_ok_poll, operation_codes, reads, sends, with_parts

PRECOMMITTED = "precommitted-read"


def precommitted_reads(batch: pa.Table) -> pa.Table:
    """Kernel: a transaction shows in one row what it sent and what it was given."""
    batch = with_parts(batch)
    f, types = operation_codes(batch)
    index = batch["index"].to_numpy()
    sent, read = sends(batch, f, types), reads(batch, is_ok_poll(f, types))
    acked = sent.type == OK
    own = np.column_stack((index[sent.row[acked]], sent.message[acked]))
    given, first = np.unique(np.column_stack((index[read.row], read.message)), axis=0, return_index=True)
    found = first[_among(given, own)]
    findings = Findings()
    chosen = found[witness_order(index[read.row[found]], ties=(read.message[found],))[:EXAMPLES]].tolist()
    keys = batch["key"].take(pa.array(read.row[chosen].astype(np.int64))).to_pylist()
    examples = []
    for at, key in zip(chosen, keys, strict=True):
        message, operation = int(read.message[at]), int(index[read.row[at]])
        examples.append(
            Example(
                key=key,
                operations=(operation,),
                tie=(message,),
                because=f"operation {operation} was given message {message} of {key or 'the queue'}, which it had sent "
                "itself and had not committed yet",
                details={"message": message},
            )
        )
    findings.add(PRECOMMITTED, len(found), examples)
    return findings.table()


def _among(pairs: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of these distinct pairs are among the others."""
    distinct = np.unique(others, axis=0)
    together = np.concatenate((pairs, distinct))
    _, place, count = np.unique(together, axis=0, return_inverse=True, return_counts=True)
    among: np.ndarray = count[place.reshape(-1)[: len(pairs)]] > 1
    return among
