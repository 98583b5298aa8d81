"""Three controllers in a storm while clients append to lists and read them; then it is decided by the lists.

Every element is unique, so the final list of a key is the order in which everything happened. Linearizable
means: what was acknowledged is in it, once; every list read is a front part of it; and a read holds all
that was acknowledged, or seen by a read that ended, before it began.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness.environments.environment import Link
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.remoting.client_error import ClientError
from system_under_test.replicated.key_value_client import KeyValueClient
from system_under_test.rocketmq.client.controller_client import ControllerClient

CONTROLLERS = ("c1", "c2", "c3")
KEYS = ("x", "y")


def _spec(name: str, config: dict[str, Any]) -> NodeSpec:
    joins = {} if name in CONTROLLERS else {"controllerJoinsGroup": True}
    peers = ";".join(f"{peer}-{peer}:9879" for peer in dict.fromkeys((*CONTROLLERS, name)))
    return NodeSpec(
        name=name,
        groups=("controllers",),
        program=PythonProgram(
            main="system_under_test.rocketmq.node:controller",
            config={
                "controllerPort": 9878,
                "controllerDLegerSelfId": name,
                "controllerDLegerPeers": peers,
                **joins,
                **config,
            },
        ),
    )


@dataclass
class Storm:
    """What the clients saw, in virtual nanoseconds."""

    acknowledged: list[tuple[str, int, int]] = field(default_factory=list)
    """(key, element, when the answer came)."""
    reads: list[tuple[str, list[int], int, int]] = field(default_factory=list)
    """(key, list, asked, answered)."""
    final: dict[str, list[int]] = field(default_factory=dict)
    panics: dict[str, str] = field(default_factory=dict)
    faults: int = 0
    changes: int = 0
    """Of the controllers' group, as far as they were answered with success."""
    trace: str = ""

    def anomalies(self) -> list[str]:
        found = [f"{node} panicked: {words}" for node, words in self.panics.items()]
        for key in KEYS:
            if key not in self.final:
                found.append(f"{key}: nobody could read it at the end")
                continue
            final = self.final[key]
            if len(set(final)) != len(final):
                found.append(f"{key}: an element was appended twice")
            place = {element: position for position, element in enumerate(final)}
            seen: list[tuple[int, int]] = []
            for name, element, answered in self.acknowledged:
                if name == key and element not in place:
                    found.append(f"{key}: {element} was acknowledged and is lost")
                elif name == key:
                    seen.append((answered, place[element] + 1))
            for name, elements, _, answered in self.reads:
                if name == key and elements != final[: len(elements)]:
                    found.append(f"{key}: a read saw {elements[-3:]} which is no part of the history")
                elif name == key:
                    seen.append((answered, len(elements)))
            for name, elements, asked, _ in self.reads:
                least = max((length for answered, length in seen if answered < asked), default=0)
                if name == key and len(elements) < least:
                    found.append(f"{key}: a read saw {len(elements)} elements after {least} were known")
        return found


async def _client(
    env: SimulatedEnvironment, storm: Storm, number: int, seed: Seed, until_ns: int, addresses: tuple[str, ...]
) -> None:
    draw = seed.child("client", str(number)).stream()
    home = addresses[number % len(addresses)]
    client = KeyValueClient(env.client_host(f"client-{number}"), addresses, timeout_s=3.0, prefer=home)
    timeline = env.timeline
    element = number
    while timeline.now_ns() < until_ns:
        await timeline.sleep(draw.uniform(0.02, 0.2))
        key = draw.choice(KEYS)
        asked = timeline.now_ns()
        try:
            if draw.random() < 0.5:
                element += 100
                await client.transaction([["append", key, element]])
                storm.acknowledged.append((key, element, timeline.now_ns()))
            else:
                storm.reads.append((key, await client.get(key) or [], asked, timeline.now_ns()))
        except ClientError:
            continue
    client.close()


async def _administrator(env: SimulatedEnvironment, storm: Storm, names: tuple[str, ...], draw: random.Random) -> None:
    """Adds, removes and hands over at random; what is no member, or is one already, is refused."""
    client = ControllerClient(env.client_host("administrator"), [f"{name}:9878" for name in names], timeout_s=6.0)
    while True:
        await env.timeline.sleep(draw.uniform(0.1, 1.0))
        name = draw.choice(names)
        change = draw.choice((client.add_controller, client.remove_controller, client.transfer_leadership))
        arguments = (name, f"{name}:9879") if change == client.add_controller else (name,)
        try:
            await change(*arguments)
            storm.changes += 1
        except ClientError:
            client.active = None


class CountsFaults(Protocol):
    faults: int
    """That had an effect."""


async def nemesis(
    env: SimulatedEnvironment,
    storm: CountsFaults,
    kinds: tuple[str, ...],
    longest_s: float,
    draw: random.Random,
    names: tuple[str, ...],
) -> None:
    """Until it is cancelled: one fault of these kinds after the other, each healed after some time."""
    timeline = env.timeline
    while True:
        await timeline.sleep(draw.uniform(0.3, longest_s))
        victims = draw.sample(names, draw.choice((1, 1, 2)))
        kind = draw.choice(kinds)
        if kind == "partition":
            alone, *_ = victims
            others = [name for name in names if name != alone]
            if draw.random() < 0.3:
                others = others[:1]
            links = [Link(alone, other) for other in others]
            if draw.random() < 0.7:
                links += [Link(other, alone) for other in others]
            effect = await env.cut(links)
        elif kind == "pause":
            effect = await env.pause(victims)
        elif kind == "kill":
            effect = await env.kill(victims)
        else:
            effect = await env.power_off(victims)
        storm.faults += effect.happened
        await timeline.sleep(draw.uniform(0.1, longest_s))
        await mend(env, names)


async def mend(env: SimulatedEnvironment, names: tuple[str, ...]) -> None:
    await env.heal()
    await env.resume(names)
    await env.boot(names)


def storm(
    root: int,
    logs: Path,
    *,
    kinds: tuple[str, ...],
    seconds: int = 40,
    clients: int = 6,
    longest_s: float = 6.0,
    config: dict[str, Any] | None = None,
    regime: Regime | None = None,
    newcomers: tuple[str, ...] = (),
) -> Storm:
    """With `newcomers` the members of the group change all the time."""
    names = (*CONTROLLERS, *newcomers)
    addresses = tuple(f"{name}:9878" for name in names)
    seed = Seed(root)
    result = Storm()
    trace = Trace()

    async def main(env: SimulatedEnvironment) -> None:
        await env.start([_spec(name, config or {}) for name in names], logs)
        until_ns = seconds * 1_000_000_000
        async with asyncio.TaskGroup() as group:
            striking = group.create_task(nemesis(env, result, kinds, longest_s, seed.child("nemesis").stream(), names))
            others = [striking]
            if newcomers:
                wishes = seed.child("administrator").stream()
                others.append(group.create_task(_administrator(env, result, names, wishes)))
            async with asyncio.TaskGroup() as clients_group:
                for number in range(clients):
                    clients_group.create_task(_client(env, result, number, seed, until_ns, addresses))
            for task in others:
                task.cancel()
        await mend(env, names)
        reader = KeyValueClient(env.client_host("reader"), addresses, timeout_s=10.0)
        for key in KEYS:
            for _ in range(60):
                try:
                    result.final[key] = await reader.get(key) or []
                    break
                except ClientError:
                    await env.timeline.sleep(1.0)
        result.panics = dict(env.panics())
        await env.stop()

    run_simulation(main, seed, trace, regime=regime)
    result.trace = trace.digest()
    return result
