"""How many delayed messages a second come out: one at a time against many at once, and timers against levels.

Messages that are all due at one moment wait at a master with one slave, over a link of half a millisecond each way,
with sync flush (simulated: an fsync takes what a calm disk takes). What is measured is from that moment until consumers
can read all: simulated seconds, which are the waiting for network and disk, and seconds of processor time of the whole
simulation, which are the work. A rate is messages by the sum of both, as if nothing overlapped; ratios of one run are
what counts, not rates.

What limits each: one at a time waits for a replication and a flush for each message; many at once do the work of a
message, and share the waiting; timers do that, read what waits from the topic once more, and come out late by up to the
width of their slots (0.1 s here), which is waiting that more messages share. Of the work nearly half is the slave's and
that of its acknowledgements, which batch push (`enableBatchPush`) saves: those that are delivered together are sent
together.

The seed reports x46 of many at once over one at a time (700/s and 32,000/s).

python benchmarks/rocketmq/delay.py [--messages 3000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from dataclasses import replace

from harness.environments.environment import Link
from harness.environments.impairment import SlowLink
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.seed import Seed
from harness.trace import Trace
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.clients.connect import message_client
from workloads.systems.rocketmq.settings import TOPIC, RocketmqSettings

DELAY_S = 10.0
ONE_WAY_MS = 0.5
LEVEL, TIMER = "DELAY\x013\x02", "TIMER_DELAY_MS\x0110000\x02"
CALM = RocketmqSettings(brokers=2, min_in_sync_replicas=2, time_scale=1.0)
MANY = replace(CALM, delay_delivery="async")
WAYS = {
    "one at a time, a level": (replace(CALM, delay_delivery="level"), LEVEL),
    "many at once, a level": (MANY, LEVEL),
    "timers": (CALM, TIMER),
    "many at once, a level, batch push": (replace(MANY, batch_push=True), LEVEL),
    "timers, batch push": (replace(CALM, batch_push=True), TIMER),
}


async def delivered(
    environment: SimulatedEnvironment, settings: RocketmqSettings, properties: str, messages: int
) -> tuple[float, float]:
    """(simulated seconds, processor seconds) from when the first message is due until all have come out."""
    await environment.start(SYSTEM.nodes(settings, None), None)
    host = environment.client_host("client")
    await host.clock.within(120, SYSTEM.ready(settings, host, "log"))
    slow = SlowLink(delay_ms=ONE_WAY_MS, jitter_ms=0)
    await environment.impair_links([Link("b1", "b2"), Link("b2", "b1")], slow)
    client = message_client(host, settings)
    begun_ns = environment.timeline.now_ns()
    sends = (client.send(TOPIC, 0, b"%d" % number, properties=properties) for number in range(messages))
    await asyncio.gather(*sends)
    await environment.timeline.sleep(DELAY_S - 0.1 - (environment.timeline.now_ns() - begun_ns) / 1e9)
    assert await client.max_offset(TOPIC, 0) == 0
    cpu_s = time.process_time()
    while await client.max_offset(TOPIC, 0) < messages:
        await environment.timeline.sleep(0.01)
    took_s = (environment.timeline.now_ns() - begun_ns) / 1e9 - DELAY_S
    cpu_s = time.process_time() - cpu_s
    client.close()
    await environment.stop()
    return took_s, cpu_s


def rate(way: str, messages: int, seed: int) -> float:
    settings, properties = WAYS[way]
    took_s, cpu_s = run_simulation(
        lambda environment: delivered(environment, settings, properties, messages),
        Seed(seed),
        Trace(),
        regime=Regime.calm(),
    )
    shown = messages / (took_s + cpu_s)
    print(f"{way}: {messages} messages in {took_s:.3f} s of waiting and {cpu_s:.3f} s of work: {shown:,.0f}/s")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    for round_number in range(chosen.rounds):
        for way in WAYS:
            rates[way].append(rate(way, chosen.messages, round_number + 1))
    serial, many, timers, many_pushed, timers_pushed = (statistics.median(rates[way]) for way in WAYS)
    for pushed, at_once, timed in (("", many, timers), (", batch push", many_pushed, timers_pushed)):
        print(
            f"many at once{pushed}, over one at a time: x{at_once / serial:.1f} (the seed: x46); "
            f"timers over many at once: x{timed / at_once:.2f}"
        )


if __name__ == "__main__":
    main()
