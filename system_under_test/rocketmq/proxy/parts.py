"""The parts of a proxy that a planted bug may replace; the defaults are the healthy ones."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.rocketmq.proxy.receiving import Receiving
from system_under_test.rocketmq.proxy.sending import Sending


@dataclass(frozen=True, kw_only=True)
class ProxyParts:
    sending: type[Sending] = Sending
    receiving: type[Receiving] = Receiving
