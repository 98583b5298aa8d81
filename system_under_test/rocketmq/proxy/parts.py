"""The parts of a proxy that a planted bug may replace; the defaults are the healthy ones."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.rocketmq.proxy.receiving import Receiving
from system_under_test.rocketmq.proxy.sending import Sending
from system_under_test.rocketmq.proxy.sessions import Sessions
from system_under_test.rocketmq.proxy.transactions import ProxyTransactions
from system_under_test.runtime.places import Places


@dataclass(frozen=True, kw_only=True)
class ProxyParts:
    sending: type[Sending] = Sending
    receiving: type[Receiving] = Receiving
    sessions: type[Sessions] = Sessions
    transactions: type[ProxyTransactions] = ProxyTransactions
    places: type[Places] = Places
