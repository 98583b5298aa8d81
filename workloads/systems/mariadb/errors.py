"""What MariaDB calls the errors that its transactions end with (https://mariadb.com/kb/en/mariadb-error-code-reference/).

A transaction that is answered with 1213, at COMMIT as well, was rolled back: by a deadlock or, in a cluster, because it
was not certified.
"""

from __future__ import annotations

from harness.errors import ErrorCode
from workloads.systems.sql.session import Refused

KNOWN = {
    "1213": ErrorCode("deadlock", definite=True),
    "1205": ErrorCode("lock-wait-timeout", definite=False),
    "1020": ErrorCode("record-has-changed", definite=False),
    "1047": ErrorCode("not-in-primary-component", definite=False),
    "1290": ErrorCode("read-only", definite=False),
}
"""Definite: also where it answers a COMMIT."""


def code_of(error: Refused) -> ErrorCode:
    return KNOWN.get(error.code, ErrorCode(f"error-{error.code}", definite=False))
