"""Which answers of Apache RocketMQ about popped messages count, as decision 0152 says.

It answers SUCCESS to every acknowledgement and every change of an invisible time, whether or not the delivery still has
the message. So an answer that came when that time may have been over leaves unknown what came of it, and what was
acknowledged is not changed any more. The brokers that come with Stormproof refuse such requests, and their word is
taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from harness.errors import OUTCOME_UNKNOWN, PRECONDITION_FAILED, OperationError
from workloads.systems.rocketmq.settings import RocketmqSettings

MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hold:
    until_ns: int
    """Nobody else has the message before, by the client's monotonic clock."""
    is_acknowledged: bool = False


class Holds:
    """Of one process, by message: its last delivery."""

    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._clock = host.clock
        self._brokers_refuse = not settings.is_original
        self._holds: dict[int, _Hold] = {}

    def now_ns(self) -> int:
        return int(self._clock.monotonic_ns())

    def hold(self, message: int, asked_ns: int, invisible_ms: int) -> None:
        """By a pop that was asked for then."""
        self._holds[message] = _Hold(until_ns=asked_ns + invisible_ms * MS)

    def require_unacknowledged(self, message: int) -> None:
        """Raises OperationError where nothing may be asked about the message any more."""
        if not self._brokers_refuse and self._holds[message].is_acknowledged:
            raise OperationError(PRECONDITION_FAILED, "this process has acknowledged the message")

    def acknowledged(self, message: int, node: str | None) -> None:
        """Success was answered. Raises OperationError where that says nothing."""
        self._require_in_time(self._holds[message], node)
        self._holds[message] = replace(self._holds[message], is_acknowledged=True)

    def changed(self, message: int, asked_ns: int, invisible_ms: int) -> None:
        """As `acknowledged`."""
        former = self._holds[message]
        self.hold(message, asked_ns, invisible_ms)
        self._require_in_time(former, None)

    def _require_in_time(self, hold: _Hold, node: str | None) -> None:
        if not self._brokers_refuse and self.now_ns() >= hold.until_ns:
            late = "success was answered when the invisible time may have been over, and may mean nothing"
            raise OperationError(OUTCOME_UNKNOWN, late, node=node)
