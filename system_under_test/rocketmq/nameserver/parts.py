"""The decisions of a NameServer that a planted bug may replace; the defaults are the healthy ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from system_under_test.rocketmq.nameserver.registration import Registration
from system_under_test.rocketmq.nameserver.route_table import outranks


@dataclass(frozen=True, kw_only=True)
class NameServerParts:
    outranks: Callable[[Registration, Registration], bool] = outranks
