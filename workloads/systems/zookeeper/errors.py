"""How requests to ZooKeeper end that are not answered, and which of them certainly were not carried out."""

from __future__ import annotations

from harness.errors import ErrorCode

READ_FAILED = ErrorCode("read-failed", definite=True)
"""Whatever ended a request that only reads: it changed nothing."""
