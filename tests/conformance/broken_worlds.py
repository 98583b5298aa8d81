"""Worlds that break one promise each, as the author of an environment might: by half a verb, or none.

They are made of a healthy simulated world and use nothing of it but its verbs and what a node sees of its host. A world
either carries a verb out wrongly, or gives its nodes a host whose disk, network or clock is wrong (`program`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import beacon

from harness.environments.environment import Effect, Environment, Link
from harness.program import Program
from system_under_test.runtime.host import ConnectFailed, Connection, Host

DONE = Effect(True, "said to be done")


class World:
    """A healthy one: every verb is that of the environment beneath."""

    program = "beacon:main"
    _now: ClassVar[World]
    """The world in which the programs of this module run: there is one at a time."""

    def __init__(self, environment: Environment) -> None:
        self.beneath = environment
        World._now = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


# Links


class CutOfNewConnections(World):
    """Connections that exist live on."""

    program = f"{__name__}:refusing_new_connections"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.cut_links: set[Link] = set()

    async def cut(self, links: Sequence[Link]) -> Effect:
        newly = set(links) - self.cut_links
        self.cut_links |= newly
        return Effect(bool(newly), "cut")

    async def heal(self, links: Sequence[Link] | None = None) -> Effect:
        healed = self.cut_links & set(self.cut_links if links is None else links)
        self.cut_links -= healed
        return Effect(bool(healed), "healed")


class CutFirewall:
    def __init__(self, host: Host, world: CutOfNewConnections) -> None:
        self._host, self._world, self._network = host, world, host.network
        self.listen = host.network.listen

    async def connect(self, address: str, timeout_s: float) -> Connection:
        other = address.partition(":")[0]
        if self._world.cut_links & {Link(self._host.name, other), Link(other, self._host.name)}:
            await self._host.clock.sleep(timeout_s)
            raise ConnectFailed("a firewall")
        return await self._network.connect(address, timeout_s)


async def refusing_new_connections(host: Host, config: Mapping[str, Any]) -> None:
    assert isinstance(World._now, CutOfNewConnections)
    host.network = CutFirewall(host, World._now)
    await beacon.main(host, config)


class WayBackOpen(World):
    """Of a link that is to be cut both ways, one stays open."""

    async def cut(self, links: Sequence[Link]) -> Effect:
        first = [link for place, link in enumerate(links) if Link(link.target, link.source) not in links[:place]]
        return await self.beneath.cut(first)


class WayThereOpen(World):
    async def cut(self, links: Sequence[Link]) -> Effect:
        last = [link for place, link in enumerate(links) if Link(link.target, link.source) not in links[place:]]
        return await self.beneath.cut(last)


class CutBothWays(World):
    """A cut of one direction stops the other as well."""

    async def cut(self, links: Sequence[Link]) -> Effect:
        return await self.beneath.cut(_both_ways(links))

    async def heal(self, links: Sequence[Link] | None = None) -> Effect:
        return await self.beneath.heal(None if links is None else _both_ways(links))


def _both_ways(links: Sequence[Link]) -> list[Link]:
    return [way for link in links for way in (link, Link(link.target, link.source))]


class HealingOfBothWays(World):
    async def heal(self, links: Sequence[Link] | None = None) -> Effect:
        return await self.beneath.heal(None if links is None else _both_ways(links))


class HealingOfNothing(World):
    async def heal(self, links: Sequence[Link] | None = None) -> Effect:
        return DONE


class CutByReset(World):
    """Connections are not held up by a cut but broken: of what was written to them nothing arrives."""

    program = f"{__name__}:losing_what_a_cut_holds_up"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.cut_links: set[Link] = set()

    async def cut(self, links: Sequence[Link]) -> Effect:
        self.cut_links.update(links)
        return await self.beneath.cut(links)

    async def heal(self, links: Sequence[Link] | None = None) -> Effect:
        self.cut_links.clear()
        return await self.beneath.heal(links)


class ForgetfulConnection:
    """Drops what is written while the way to the peer is cut."""

    def __init__(self, connection: Connection, link: Link, world: CutByReset) -> None:
        self._connection, self._link, self._world = connection, link, world
        self.read_exactly, self.close = connection.read_exactly, connection.close

    def write(self, data: bytes) -> None:
        if self._link not in self._world.cut_links:
            self._connection.write(data)


class ForgetfulNetwork:
    def __init__(self, host: Host, world: CutByReset) -> None:
        self._host, self._world, self._network = host, world, host.network
        self.listen = host.network.listen

    async def connect(self, address: str, timeout_s: float) -> Any:
        connection = await self._network.connect(address, timeout_s)
        return ForgetfulConnection(connection, Link(self._host.name, address.partition(":")[0]), self._world)


async def losing_what_a_cut_holds_up(host: Host, config: Mapping[str, Any]) -> None:
    assert isinstance(World._now, CutByReset)
    host.network = ForgetfulNetwork(host, World._now)  # type: ignore[assignment]
    await beacon.main(host, config)


class CutOfClients(World):
    """Clients are cut off together with the nodes."""

    async def cut(self, links: Sequence[Link]) -> Effect:
        await self.beneath.cut([Link("client", link.source) for link in links])
        return await self.beneath.cut(links)


# Processes


class Ending(World):
    """It can ask a node's program to end, which then carries out what it has to tidy up."""

    program = f"{__name__}:noting_its_task"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.tasks: dict[str, asyncio.Task[Any]] = {}

    async def end(self, nodes: Sequence[str]) -> None:
        for node in nodes:
            if node in self.tasks:
                self.tasks.pop(node).cancel()
        await self.beneath.timeline.sleep(0.001)


async def noting_its_task(host: Host, config: Mapping[str, Any]) -> None:
    assert isinstance(World._now, Ending)
    task = World._now.tasks[host.name] = host.spawn(beacon.main(host, config), "beacon")
    try:
        await asyncio.Event().wait()
    finally:
        task.cancel()
        await asyncio.wait([task])


class GracefulKill(Ending):
    """A process is asked to end before it is killed."""

    async def kill(self, nodes: Sequence[str]) -> Effect:
        await self.beneath.resume(nodes)
        await self.end(nodes)
        return await self.beneath.kill(nodes)


class KillOfNothing(World):
    async def kill(self, nodes: Sequence[str]) -> Effect:
        return DONE


class KillThatTakesTheDisk(World):
    """What a killed process had written and not synced is gone."""

    async def kill(self, nodes: Sequence[str]) -> Effect:
        effect = await self.beneath.kill(nodes)
        await self.beneath.power_off(nodes)
        return effect


class SilentKill(World):
    """The machine of a killed process says to nobody that it is gone."""

    async def kill(self, nodes: Sequence[str]) -> Effect:
        await self.beneath.cut([Link(node, "client") for node in nodes])
        return await self.beneath.kill(nodes)

    async def boot(self, nodes: Sequence[str]) -> Effect:
        await self.beneath.heal([Link(node, "client") for node in nodes])
        return await self.beneath.boot(nodes)


class BootThatSaysTooMuch(World):
    async def boot(self, nodes: Sequence[str]) -> Effect:
        await self.beneath.boot(nodes)
        return DONE


class UpgradeByKill(World):
    """What a clean stop would do is left undone."""

    async def upgrade(self, nodes: Sequence[str]) -> Effect:
        await self.beneath.kill(nodes)
        effect = await self.beneath.upgrade(nodes)
        await self.beneath.boot(nodes)
        return effect


class UpgradeToTheSame(World):
    """It is only started again."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.upgraded: set[str] = set()

    async def upgrade(self, nodes: Sequence[str]) -> Effect:
        if self.upgraded.issuperset(nodes):
            return Effect(False, "upgraded already")
        self.upgraded.update(nodes)
        await self.beneath.kill(nodes)
        return await self.beneath.boot(nodes)


class ProgramOfOneLife(World):
    """It is started as the other program at once, and never again."""

    async def replace_program(self, node: str, program: Program) -> Effect:
        return await self.beneath.upgrade([node])


class ProgramOfNobody(World):
    """What is said to be replaced goes on as it is."""

    async def replace_program(self, node: str, program: Program) -> Effect:
        is_known, self.current = program == getattr(self, "current", None), program
        return Effect(not is_known, "said to be replaced")


class PauseOfTheNetwork(World):
    """A paused node is not heard of, and its timers run."""

    async def pause(self, nodes: Sequence[str]) -> Effect:
        return await self.beneath.cut(_to_and_from_clients(nodes))

    async def resume(self, nodes: Sequence[str]) -> Effect:
        return await self.beneath.heal(_to_and_from_clients(nodes))


def _to_and_from_clients(nodes: Sequence[str]) -> list[Link]:
    return _both_ways([Link("client", node) for node in nodes])


class PauseOfAll(World):
    async def pause(self, nodes: Sequence[str]) -> Effect:
        return await self.beneath.pause(["a", "b"])

    async def resume(self, nodes: Sequence[str]) -> Effect:
        return await self.beneath.resume(["a", "b"])


class ResumingByRestart(World):
    """What a paused node had in memory is gone."""

    async def resume(self, nodes: Sequence[str]) -> Effect:
        if (await self.beneath.resume(nodes)).happened:
            await self.beneath.kill(nodes)
            return await self.beneath.boot(nodes)
        return Effect(False, "no process that was paused")


# Power and disks


class PowerThatKeepsEverything(World):
    """A loss of power is no more than a kill: all that was written is there again."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.dark: set[str] = set()

    async def power_off(self, nodes: Sequence[str]) -> Effect:
        newly = set(nodes) - self.dark
        self.dark |= newly
        await self.beneath.kill(nodes)
        return Effect(bool(newly), "power lost")

    async def boot(self, nodes: Sequence[str]) -> Effect:
        self.dark -= set(nodes)
        return await self.beneath.boot(nodes)


class BootWithUnsyncedBytes(World):
    """Power takes what was not synced, and the boot brings it back."""

    program = f"{__name__}:booting_with_all_it_ever_wrote"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.written: dict[str, bytes] = {}


class RememberedFile:
    """A file that is put down elsewhere with each append."""

    def __init__(self, file: Any, host: Host, world: BootWithUnsyncedBytes) -> None:
        self._file, self._host, self._world = file, host, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def append(self, data: bytes) -> int:
        offset: int = self._file.append(data)
        self._world.written[self._host.name] = self._file.read_at(0, self._file.size)
        return offset


async def booting_with_all_it_ever_wrote(host: Host, config: Mapping[str, Any]) -> None:
    world = World._now
    assert isinstance(world, BootWithUnsyncedBytes)
    file = host.disk.open(beacon.KEPT)
    file.write_at(0, world.written.get(host.name, b""))
    host.disk = DiskOf(host.disk, {beacon.KEPT: lambda file: RememberedFile(file, host, world)})
    await beacon.main(host, config)


class DiskOf:
    """A disk some of whose files are wrong."""

    def __init__(self, disk: Any, wrong: Mapping[str, Any]) -> None:
        self._disk, self._wrong = disk, wrong

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def open(self, path: str) -> Any:
        file = self._disk.open(path)
        return self._wrong[path](file) if path in self._wrong else file


class FsyncBehindTheNewestWrite(World):
    """An fsync makes durable all but what was written last."""

    program = f"{__name__}:syncing_all_but_the_newest"


class LateFile:
    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    async def fsync(self) -> None:
        end = self._file.size
        newest = self._file.read_at(end - 1, 1)
        self._file.truncate(end - 1)
        await self._file.fsync()
        self._file.append(newest)


async def syncing_all_but_the_newest(host: Host, config: Mapping[str, Any]) -> None:
    host.disk = DiskOf(host.disk, {beacon.KEPT: LateFile})
    await beacon.main(host, config)


class FsyncThatDoesNothing(World):
    program = f"{__name__}:never_syncing"


class UnsyncedFile:
    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    async def fsync(self) -> None:
        return None


async def never_syncing(host: Host, config: Mapping[str, Any]) -> None:
    host.disk = DiskOf(host.disk, {beacon.KEPT: UnsyncedFile})
    await beacon.main(host, config)


class ReplaceThatIsNotDurable(World):
    program = f"{__name__}:replacing_in_memory"


class HastyDisk(DiskOf):
    async def replace(self, source: str, target: str) -> None:
        """Copies instead of renaming, and syncs nothing."""
        content = self._disk.open(source).read_at(0, 1 << 20)
        self._disk.open(target).write_at(0, content)
        self._disk.remove(source)


async def replacing_in_memory(host: Host, config: Mapping[str, Any]) -> None:
    host.disk = HastyDisk(host.disk, {})
    await beacon.main(host, config)


class PolitePowerLoss(World):
    """The machine says good-bye on every connection before it goes dark."""

    async def power_off(self, nodes: Sequence[str]) -> Effect:
        await self.beneath.kill(nodes)
        await self.beneath.timeline.sleep(0.1)
        return await self.beneath.power_off(nodes)


class TidyPowerLoss(Ending):
    """Processes tidy up before the power goes."""

    async def power_off(self, nodes: Sequence[str]) -> Effect:
        await self.end(nodes)
        return await self.beneath.power_off(nodes)


class PowerThatIsNotThere(World):
    """A world without losses of power that carries one out nevertheless, as something else."""

    faults = frozenset({"partition", "kill", "pause", "clock"})

    async def power_off(self, nodes: Sequence[str]) -> Effect:
        return await self.beneath.kill(nodes)


# Clocks


class SkewedWorld(World):
    """What the clock of each node was set to."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.offsets_s: dict[str, float] = {}
        self.rates: dict[str, float] = {}

    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        self.offsets_s[node], self.rates[node] = offset_s, rate
        return await self.beneath.set_clock(node, offset_s=offset_s, rate=rate)


class MonotonicTimeFollowsWallTime(SkewedWorld):
    program = f"{__name__}:with_jumping_monotonic_time"


class TimersFollowWallTime(SkewedWorld):
    program = f"{__name__}:with_stretched_timers"


class JumpingClock:
    def __init__(self, host: Host, world: SkewedWorld) -> None:
        self._name, self._clock, self._world = host.name, host.clock, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def monotonic_ns(self) -> int:
        return self._clock.monotonic_ns() + round(self._world.offsets_s.get(self._name, 0.0) * 1e9)


class StretchingClock:
    def __init__(self, host: Host, world: SkewedWorld) -> None:
        self._name, self._clock, self._world = host.name, host.clock, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds / self._world.rates.get(self._name, 1.0))


async def with_jumping_monotonic_time(host: Host, config: Mapping[str, Any]) -> None:
    assert isinstance(World._now, SkewedWorld)
    host.clock = JumpingClock(host, World._now)
    await beacon.main(host, config)


async def with_stretched_timers(host: Host, config: Mapping[str, Any]) -> None:
    assert isinstance(World._now, SkewedWorld)
    host.clock = StretchingClock(host, World._now)
    await beacon.main(host, config)


class ClockOfAll(World):
    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        await self.beneath.set_clock("b", offset_s=offset_s, rate=rate)
        return await self.beneath.set_clock(node, offset_s=offset_s, rate=rate)


class ClockWithoutDrift(World):
    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        return await self.beneath.set_clock(node, offset_s=offset_s, rate=1.0)


class ClockThatStaysWrong(World):
    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        if (offset_s, rate) == (0.0, 1.0):
            return DONE
        return await self.beneath.set_clock(node, offset_s=offset_s, rate=rate)


# All verbs


class VerbsForAnybody(World):
    """Nodes that are not there are passed over in silence."""

    async def boot(self, nodes: Sequence[str]) -> Effect:
        return await self.beneath.boot([node for node in nodes if node in ("a", "b")])
