"""Which part a broker plays in its group, and who decides that."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from system_under_test.rocketmq.broker.request_handler import Handlers


class Role(Enum):
    NONE = "none"
    """No role announced yet, or between two roles, or no master is known to follow."""
    MASTER = "master"
    SLAVE = "slave"


class Roles(Protocol):
    """Takes roles, as controllers say or as the configuration does, and gives them up."""

    role: Role

    @property
    def broker_id(self) -> int | None:
        """What the replicas of the group call this one, once that is known."""
        ...

    @property
    def role_id(self) -> int | None:
        """What NameServers and clients call this broker: 0 for the master."""
        ...

    @property
    def acted_master_epoch(self) -> int:
        """The newest master epoch acted upon since the start of the process; 0 where there are none."""
        ...

    @property
    def handlers(self) -> Handlers:
        """What it answers to others of the cluster."""
        ...

    def start(self) -> None: ...

    async def stop(self) -> None:
        """No role is taken any more; the log is left alone from here on."""
