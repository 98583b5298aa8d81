"""What PostgreSQL calls the errors that its transactions end with (https://www.postgresql.org/docs/15/errcodes-appendix.html).

Of class 40 the transaction was rolled back, at COMMIT as well, but for 40003, which says that nobody knows.
"""

from __future__ import annotations

from harness.errors import ErrorCode
from workloads.systems.sql.session import Refused

ROLLED_BACK = {
    "40001": ErrorCode("serialization-failure", definite=True),
    "40P01": ErrorCode("deadlock-detected", definite=True),
    "25P02": ErrorCode("in-failed-transaction", definite=True),
    "25006": ErrorCode("read-only-transaction", definite=True),
}


def code_of(error: Refused) -> ErrorCode:
    known = ROLLED_BACK.get(error.code)
    if known is not None:
        return known
    return ErrorCode(f"sqlstate-{error.code}", definite=error.code.startswith("40") and error.code != "40003")
