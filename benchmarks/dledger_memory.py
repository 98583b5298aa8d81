"""Whether a member of DLedger stays as it is while its log grows: resident memory and open files of this process.

A group of one member with its log in files, on a real disk, takes appends of 100 bytes, a hundred at a time; after each
round the kernel is asked for this process's resident memory and file descriptors. Growth is that of the second half of
the rounds, by entry, when caches are warm and pools of memory have their size.

python benchmarks/dledger_memory.py [--appends N] [--rounds N]
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from system_under_test.dledger.config import MemberConfig
from system_under_test.dledger.driver import GroupMember
from system_under_test.dledger.message import AnyAnswer, Code, Request
from system_under_test.dledger.store import FileStore
from system_under_test.dledger.vote_file import VoteFile
from system_under_test.runtime.real import RealHost

BODY = b"x" * 100
AT_ONCE = 100
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Size(NamedTuple):
    resident_bytes: int
    files: int

    @classmethod
    def now(cls) -> Size:
        pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
        return cls(pages * PAGE_BYTES, len(os.listdir("/proc/self/fd")))


class Nobody:
    """`Peers` of a group of one."""

    async def ask(self, peer: str, request: Request, timeout_s: float) -> AnyAnswer | None:
        raise AssertionError(f"{peer} is asked")


async def sizes(directory: Path, rounds: int, appends: int) -> list[Size]:
    """Before the first round and after each."""
    host = RealHost("n0", directory)
    config = MemberConfig()
    store = FileStore(host.disk, "dledger", config.sizes())
    votes = VoteFile(host.disk, "vote")
    member = GroupMember(host, "steady", config.core(), config.times(), store=store, votes=votes, peers=Nobody())
    await member.start()
    await asyncio.sleep(2)  # it has become leader meanwhile
    found = [Size.now()]
    for number in range(1, rounds + 1):
        for _ in range(appends // AT_ONCE):
            appended = await member.append((BODY,) * AT_ONCE)
            assert appended.code is Code.SUCCESS
            await asyncio.sleep(0)
        found.append(Size.now())
        print(
            f"{number * appends:9,} {found[-1].resident_bytes / 2**20:7.1f} MiB {found[-1].files:3} files", flush=True
        )
    await member.stop()
    await host.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--appends", type=int, default=100_000, help="a round")
    parser.add_argument("--rounds", type=int, default=10)
    chosen = parser.parse_args()
    with TemporaryDirectory() as directory:
        found = asyncio.run(sizes(Path(directory), chosen.rounds, chosen.appends))
    half = found[len(found) // 2]
    entries = (len(found) - 1 - len(found) // 2) * chosen.appends
    grown = found[-1].resident_bytes - half.resident_bytes
    print(f"{grown / entries:+.1f} bytes an entry over the last {entries:,}; {found[-1].files - half.files:+} files")


if __name__ == "__main__":
    main()
