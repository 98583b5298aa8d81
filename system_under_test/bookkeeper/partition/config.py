"""A broker's settings, by their names in JSON."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.bookkeeper.ledger.metadata import Placement, Quorums
from system_under_test.bookkeeper.partition.position import MOST_ENTRIES
from system_under_test.node.settings import addresses, choice, integer, port, seconds, text


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataServers:
    servers: tuple[str, ...] = addresses("metadataServers")
    answer_timeout_s: float = seconds("metadataAnswerTimeout", 2_000)
    """So long one of them is waited for, before another one is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    port: int = port("brokerPort", 6650)
    partition_names: str = text("partitions")
    """Names of all partitions, which every broker would like to own, separated by semicolons."""
    ensemble: int = integer("ensembleSize", 3, minimum=1)
    write_quorum: int = integer("writeQuorum", 3, minimum=1)
    ack_quorum: int = integer("ackQuorum", 2, minimum=1)
    placement: Placement = choice("placement", Placement.FRAGMENT)
    roll_entries: int = integer("rollEntries", 50_000, minimum=2, maximum=MOST_ENTRIES)
    """A ledger has so many entries before the next one follows it."""

    bookie_timeout_s: float = seconds("bookieTimeout", 2_000)
    """A bookie that has not answered for so long is taken for silent."""
    explicit_lac_s: float = seconds("explicitLacInterval", 0, minimum_ms=0)
    """How often bookies hear of what is acknowledged of a ledger, where no entry carries it to them; 0: never."""

    def __post_init__(self) -> None:
        _ = self.quorums

    @property
    def quorums(self) -> Quorums:
        """Raises ValueError where they do not fit each other."""
        return Quorums(ensemble=self.ensemble, write=self.write_quorum, ack=self.ack_quorum)

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(name for name in self.partition_names.split(";") if name)
