"""Which storms a campaign blows: drawn from one root seed, in an order that soon has been everywhere.

A campaign is a list of releases with a share each, workloads, and packages of faults. Within a release, the n-th storm
takes the n-th workload and the n-th package, both in an order of chance and round and round, and moves on by one where
the two rounds would meet again: so each workload and each package is there among the first few storms, and no pair
comes twice before all came once. A storm's seed depends on its place alone, not on what else a campaign is made of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from harness.seed import Seed

SYSTEM = "rocketmq"
SHARES: Mapping[str, int] = {"5.4.0": 3, "5.2.0": 1, "5.1.4": 1, "5.1.0": 1}
"""Release -> how many of the storms of a round put it on trial."""
WORKLOADS = ("log", "queue", "pop", "consumption", "delayed", "transactional")
PACKAGES = (
    "partition",
    "kill",
    "pause",
    "power",
    "clock",
    "disk",
    "disk-damage",
    "membership",
    "restarts",
    "slow-links,lossy-links",
    "held-links,flapping-links",
    "duplicating-links,reordering-links",
    "partition,kill,pause",
    "partition,power",
    "kill,pause",
    "links,pause,clock",
)
CLIENTS, CLIENTS_OF_ONE = 10, 4
SEED_BITS = 63
"""What `--seed` takes."""


@dataclass(frozen=True, kw_only=True)
class Storm:
    release: str
    workload: str
    nemesis: str
    seed: int

    def arguments(self, time_limit_s: float, runs: str) -> tuple[str, ...]:
        """Of the command line that blows it."""
        return (
            "run",
            SYSTEM,
            *("--environment", "docker", "--set", f"release={self.release}", "--workload", self.workload),
            *("--concurrency", str(self.clients)),
            *("--nemesis", self.nemesis, "--time-limit", f"{time_limit_s:g}", "--seed", str(self.seed)),
            *("--engine", "inprocess", "--runs", runs, "--json"),
        )

    @property
    def clients(self) -> int:
        """Of several workloads at once each has some."""
        return max(CLIENTS, CLIENTS_OF_ONE * len(self.workload.split("+")))

    def words(self) -> str:
        return f"{self.release} {self.workload} {self.nemesis} {self.seed}"


def drawn(
    root: int,
    count: int,
    shares: Mapping[str, int] = SHARES,
    workloads: Sequence[str] = WORKLOADS,
    packages: Sequence[str] = PACKAGES,
) -> list[Storm]:
    """The first storms of a campaign, in their order."""
    return list(islice(_endless(Seed(root), shares, workloads, packages), count))


def _endless(
    seed: Seed, shares: Mapping[str, int], workloads: Sequence[str], packages: Sequence[str]
) -> Iterator[Storm]:
    orders = {release: _pairs(seed.child(release), workloads, packages) for release in shares}
    taken: Counter[tuple[str, str, str]] = Counter()
    while True:
        for release in _round(shares):
            workload, package = next(orders[release])
            place = (release, workload, package)
            number = seed.child(*place, str(taken[place])).integer() >> (64 - SEED_BITS)
            taken[place] += 1
            yield Storm(release=release, workload=workload, nemesis=package, seed=number)


def _round(shares: Mapping[str, int]) -> list[str]:
    """Each release as often as its share, those of a release far apart."""
    turns = [((turn + 0.5) / share, release) for release, share in shares.items() for turn in range(share)]
    return [release for _, release in sorted(turns, key=lambda turn: turn[0])]


def _pairs(seed: Seed, workloads: Sequence[str], packages: Sequence[str]) -> Iterator[tuple[str, str]]:
    random = seed.child("order").stream()
    first, second = random.sample(list(workloads), len(workloads)), random.sample(list(packages), len(packages))
    meet = math.lcm(len(first), len(second))
    number = 0
    while True:
        yield first[number % len(first)], second[(number + number // meet) % len(second)]
        number += 1
