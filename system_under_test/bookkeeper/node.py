"""The processes of BookKeeper: a node of the metadata store, a bookie with repair beside it, a broker of partitions.

Each config has the settings of its own kind, and `mutant`: the name of a planted bug. Bookies and brokers are told by
`metadataServers` where the metadata store is. A wrong or unknown setting raises ValueError that names it, before
anything is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from system_under_test.bookkeeper import mutants
from system_under_test.bookkeeper.bookie.config import BookieConfig
from system_under_test.bookkeeper.bookie.service import BookieService
from system_under_test.bookkeeper.ledger.driver import LedgerClient
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.partition.broker import Broker
from system_under_test.bookkeeper.partition.config import BrokerConfig, MetadataServers
from system_under_test.bookkeeper.partition.partition import Partition
from system_under_test.bookkeeper.partition.reports import OwnerRole
from system_under_test.bookkeeper.parts import BookieParts
from system_under_test.bookkeeper.repair.assembly import repair_services
from system_under_test.metadata.client import MetadataClient
from system_under_test.metadata.node import serve
from system_under_test.node.assembly import Assembly, AtPort
from system_under_test.node.settings import read_config
from system_under_test.remoting.server import RemotingServer
from system_under_test.runtime.host import Host


async def metadata(host: Host, config: Mapping[str, Any]) -> None:
    await serve(host, Assembly(host, config, mutants))


async def bookie(host: Host, config: Mapping[str, Any]) -> None:
    node = Assembly(host, config, mutants)
    access = _metadata_client(host, node)
    service = BookieService(host, read_config(BookieConfig, node.config), access, node.parts(BookieParts))
    await node.run([access, service, *repair_services(host, node, access, service.bookie)])


async def broker(host: Host, config: Mapping[str, Any]) -> None:
    node = Assembly(host, config, mutants)
    access = _metadata_client(host, node)
    settings = read_config(BrokerConfig, node.config)
    parts = node.parts(LedgerParts)
    ledgers = LedgerClient(
        host,
        access,
        settings.quorums,
        placement=settings.placement,
        timeout_s=settings.bookie_timeout_s,
        explicit_lac_s=settings.explicit_lac_s,
        parts=parts,
    )
    role = OwnerRole(host)
    partitions = {
        name: Partition(host, name, role, access, ledgers, settings.roll_entries) for name in settings.partitions
    }
    server = RemotingServer(host, Broker(host.name, partitions).handle)
    await node.run([access, ledgers, *partitions.values(), AtPort(server, settings.port)])


def _metadata_client(host: Host, node: Assembly) -> MetadataClient:
    settings = read_config(MetadataServers, node.config)
    return MetadataClient(host, settings.servers, answer_timeout_s=settings.answer_timeout_s)
