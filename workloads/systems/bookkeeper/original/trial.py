"""A release of BookKeeper on trial: what of the adapter is otherwise than with the one that comes with Stormproof."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from harness.client import Client
from harness.errors import OperationError, UsageError
from harness.membership import Start
from harness.record.facts import Lack
from harness.system import NodeSpec
from workloads.systems.bookkeeper.copies import ASK_AGAIN_S, UNDER_REPLICATED
from workloads.systems.bookkeeper.nodes import BOOKIE_PORT, PARTITION
from workloads.systems.bookkeeper.original.brokers import Brokers
from workloads.systems.bookkeeper.original.client import OriginalLogClient
from workloads.systems.bookkeeper.original.nodes import original_nodes
from workloads.systems.bookkeeper.settings import METADATA_NODES, BookkeeperSettings
from workloads.systems.zookeeper.mode import mode

PATIENCE_S = 4.0
"""How long a client waits for an answer."""
STARTS_WITHIN_S = 20.0
"""How long a virtual machine may take on a busy machine before its bookie or its broker serves."""
UNSERVED = "ZooKeeper keeps the metadata of a release, and system zookeeper puts it on trial; leave release out"
"""The workload `register`."""
LOOKED_WITHIN_S = 20.0
"""So long a broker is waited for that looks at all copies."""
REPLACED_WITHIN_S = 60.0
"""So long a broker is waited for that gives all copies a bookie held to others."""


class Original:
    """Of all runs with `release`."""

    def nodes(self, settings: BookkeeperSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        if mutant is not None:
            raise UsageError(f"nothing is planted beside the public BookKeeper; leave mutant {mutant} out, or release")
        return original_nodes(settings)

    def client(self, settings: BookkeeperSettings, host: Any) -> Client:
        return OriginalLogClient(host, settings.broker_names, PATIENCE_S)

    async def ready(self, settings: BookkeeperSettings, host: Any) -> None:
        """All partitions have owners, and all bookies are registered."""
        asking = Brokers(host, settings.broker_names, PATIENCE_S)
        for number in range(settings.partitions):
            while await asking.owner(PARTITION.format(number)) is None:
                await host.clock.sleep(0.2)
        for bookie in settings.bookie_names:
            while not await _lives(asking, bookie):
                await host.clock.sleep(0.2)
        asking.close()

    async def lacking(self, settings: BookkeeperSettings, host: Any) -> Lack | None:
        """Nothing where no other bookie is there that could take copies."""
        if settings.bookies == settings.ensemble:
            return None
        asking = Brokers(host, settings.broker_names, LOOKED_WITHIN_S)
        try:
            while True:
                with suppress(OperationError):
                    _, answer = await asking.look(f="lack")
                    lack = answer["lack"]
                    return None if lack is None else Lack(name=UNDER_REPLICATED, because=str(lack))
                await host.clock.sleep(ASK_AGAIN_S)
        finally:
            asking.close()

    async def roles(self, settings: BookkeeperSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        asking = Brokers(host, settings.broker_names, PATIENCE_S)
        owner = await asking.owner(PARTITION.format(0))
        asking.close()
        modes = {name: await mode(host, name) for name in METADATA_NODES}
        leaders = tuple(name for name, said in modes.items() if said == "leader")
        return {**({} if owner is None else {"owner": (owner,)}), **({"metadata-leader": leaders} if leaders else {})}

    async def shrink(self, node: str) -> str:
        """Nobody has to be asked: its copies are made again before it comes back."""
        return f"{node} is given up"

    async def grow(self, settings: BookkeeperSettings, host: Any, node: NodeSpec, start: Start) -> str:
        """As an administrator replaces a bookie: `recover` with its cookie deleted, then a start without a disk. Raises
        OperationError."""
        asking = Brokers(host, settings.broker_names, PATIENCE_S)
        patient = Brokers(host, settings.broker_names, REPLACED_WITHIN_S)
        bookie = f"{node.name}:{BOOKIE_PORT}"
        try:
            broker, _ = await asking.look(f="lives", bookie=bookie)
            await patient.ask(broker, f="replace", bookie=bookie)
            await start(node.program)
            while not await _lives(asking, node.name):
                await host.clock.sleep(0.5)
        finally:
            asking.close()
            patient.close()
        return f"what {node.name} held was given to others, and it lives again without it"


async def _lives(asking: Brokers, bookie: str) -> bool:
    try:
        _, answer = await asking.look(f="lives", bookie=f"{bookie}:{BOOKIE_PORT}")
    except OperationError:
        return False
    return bool(answer["lives"])


ORIGINAL = Original()
