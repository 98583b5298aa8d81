"""A planted bug: a small, named override of healthy parts, chosen when a node starts.

The healthy code knows nothing of it. A node builds its parts, hands them to the mutant named in its
configuration, and runs with what comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from system_under_test.rocketmq.broker.parts import BrokerParts
    from system_under_test.rocketmq.controller.parts import ControllerParts
    from system_under_test.rocketmq.nameserver.parts import NameServerParts
    from system_under_test.rocketmq.proxy.parts import ProxyParts


@dataclass(frozen=True, kw_only=True)
class Mutant:
    name: str
    """As the user writes it: words joined by hyphens."""

    breaks: str
    """The guarantee it breaks, in a few words; which anomaly shows it is the checkers' business."""

    controller: Callable[[ControllerParts], ControllerParts] | None = None
    """What it changes in a controller; None if it leaves controllers alone."""

    nameserver: Callable[[NameServerParts], NameServerParts] | None = None
    """What it changes in a NameServer; None if it leaves NameServers alone."""

    broker: Callable[[BrokerParts], BrokerParts] | None = None
    """What it changes in a broker; None if it leaves brokers alone."""

    proxy: Callable[[ProxyParts], ProxyParts] | None = None
    """What it changes in a proxy; None if it leaves proxies alone."""
