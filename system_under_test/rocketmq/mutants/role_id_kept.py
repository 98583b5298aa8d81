"""A broker that has been master goes on calling itself by the master's id when it has become a slave.

NameServers and clients take it for the master. Broken rule: towards them the master alone has id 0.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.broker.parts import BrokerParts, role_id


class OnceMaster:
    """The role id of one process: the master's from the first time on."""

    def __init__(self) -> None:
        self._was_master = False

    def __call__(self, broker_id: int | None, is_master: bool) -> int | None:
        self._was_master = self._was_master or is_master
        return role_id(broker_id, self._was_master)


MUTANT = Mutant(name="role-id-kept", breaks="clients are led to the master", parts=(BrokerParts(role_id=OnceMaster()),))
