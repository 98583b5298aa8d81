"""Requests that wait for what others bring keep their places.

Where as many pulls wait as there are places, a broker refuses every send that they wait for. Broken rule: who waits has
no place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.proxy.parts import ProxyParts
from system_under_test.runtime.places import Places


class Kept(Places):
    @contextmanager
    def waiting(self) -> Iterator[None]:
        yield


MUTANT = Mutant(
    name="waiting-counts",
    breaks="those who wait keep nobody out",
    parts=(BrokerParts(places=Kept), ProxyParts(places=Kept)),
)
