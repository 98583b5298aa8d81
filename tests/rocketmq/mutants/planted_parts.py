"""The parts of a broker with a planted bug in them."""

from __future__ import annotations

from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.mutants import mutant


def parts_of(name: str | None) -> BrokerParts:
    """The healthy ones for None."""
    change = None if name is None else mutant(name).broker
    return BrokerParts() if change is None else change(BrokerParts())
