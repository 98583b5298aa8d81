"""Which replica a consumer asks next for a queue: the master, unless another is suggested or it cannot be reached."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from system_under_test.rocketmq.nameserver.registration import MASTER_ID


class ReplicaChoice:
    """One client's, queue by queue. Replicas go by their role ids, the master's being 0."""

    def __init__(self) -> None:
        self._wanted: dict[Hashable, int] = {}

    def among(self, queue: Hashable, brokers: Mapping[int, str]) -> int | None:
        """Who is asked next; None where nobody is there. Who was wanted and is not there gives way to the master, or,
        where there is none, to the slave with the least id."""
        wanted = self._wanted.get(queue, MASTER_ID)
        for replica in (wanted, MASTER_ID):
            if replica in brokers:
                return replica
        return min(brokers, default=None)

    def suggested(self, queue: Hashable, replica: int) -> None:
        """A broker has answered, and says whom to ask next."""
        self._wanted[queue] = replica

    def failed(self, queue: Hashable, replica: int, brokers: Mapping[int, str]) -> None:
        """It has not answered, or refused: the next one is asked, in a circle."""
        self._wanted[queue] = min((other for other in brokers if other > replica), default=MASTER_ID)
