"""A broker that has been master goes on calling itself by the master's id when it has become a slave.

NameServers and clients take it for the master. Broken rule: towards them the master alone has id 0.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.rocketmq.broker.parts import BrokerParts, role_id
from system_under_test.rocketmq.mutants.mutant import Mutant


class OnceMaster:
    """The role id of one process: the master's from the first time on."""

    def __init__(self) -> None:
        self._was_master = False

    def __call__(self, broker_id: int | None, is_master: bool) -> int | None:
        self._was_master = self._was_master or is_master
        return role_id(broker_id, self._was_master)


def _broker(parts: BrokerParts) -> BrokerParts:
    return replace(parts, role_id=OnceMaster())


MUTANT = Mutant(name="role-id-kept", breaks="clients are led to the master", broker=_broker)
