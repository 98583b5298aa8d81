"""What a broker takes: sends a second and sends a processor second, 1 KiB each, of one broker process.

Six groups run side by side, as processes on loopback: async and sync flush, each with 0, 1 and 2 slaves that all have
to acknowledge every message. This process sends, many at a time, to one group after the other, in several rounds. The
processor seconds are the master's own, so other work on the machine strikes the sends a second, but hardly the sends a
processor second. `--profile` tells where the master's time goes, without slaves. With `--against` another checkout's
brokers take their turns beside this one's, and the ratio is told.

python benchmarks/rocketmq/throughput.py [--seconds S] [--rounds N] [--slaves 0 1 2] [--profile] [--against CHECKOUT]
"""

from __future__ import annotations

import argparse
import asyncio
import pstats
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from loopback import HERE, Group, Load, in_turns, running, total

FLUSHES = {"async": "ASYNC_FLUSH", "sync": "SYNC_FLUSH"}


def group(flush: str, slaves: int, *, checkout: Path = HERE, profile: Path | None = None) -> Group:
    return Group(
        name=f"{flush}-{slaves}" if checkout == HERE else f"{flush}-{slaves}-there",
        slaves=slaves,
        settings={
            "flushDiskType": FLUSHES[flush],
            "allAckInSyncStateSet": True,
            "minInSyncReplicas": 1 + slaves,
        },
        checkout=checkout,
        profile=profile,
    )


def measure(groups: Sequence[Group], rounds: int, seconds: float, at_once: int) -> dict[str, Load]:
    with running(groups) as cluster:
        turns = asyncio.run(in_turns(cluster, groups, rounds, seconds, at_once))
    return {name: total(loads) for name, loads in turns.items()}


def profile_of(flush: str, seconds: float, at_once: int) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "profile"
        measure([group(flush, 0, profile=path)], 1, seconds, at_once)
        print(f"{flush} flush, without slaves:")
        pstats.Stats(str(path)).sort_stats("tottime").print_stats(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=256)
    parser.add_argument("--slaves", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--against", type=Path, help="another checkout")
    chosen = parser.parse_args()
    checkouts = [HERE] if chosen.against is None else [HERE, chosen.against.resolve()]
    cases = [(flush, slaves) for flush in FLUSHES for slaves in chosen.slaves]
    groups = [group(*case, checkout=checkout) for case in cases for checkout in checkouts]
    loads = measure(groups, chosen.rounds, chosen.seconds, chosen.at_once)
    print(f"{'flush, slaves':16} {'sends/s':>9} {'sends/processor s':>18}")
    for name, load in loads.items():
        print(f"{name:16} {load.per_second:9,.0f} {load.per_processor_second:18,.0f}")
    for flush, slaves in cases if chosen.against is not None else ():
        here, there = loads[f"{flush}-{slaves}"], loads[f"{flush}-{slaves}-there"]
        print(
            f"{flush}, {slaves} slaves: here x{here.per_second / there.per_second:.2f} of the sends a second, "
            f"x{here.per_processor_second / there.per_processor_second:.2f} a processor second"
        )
    if chosen.profile:
        for flush in FLUSHES:
            profile_of(flush, chosen.seconds, chosen.at_once)


if __name__ == "__main__":
    main()
