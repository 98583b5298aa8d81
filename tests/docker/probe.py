"""A node that answers questions about where it runs over one connection each: a program of one file.

Standard library only. Asked by the tests through a published port, and by other probes from inside.
Port 7000 takes one line of JSON a connection and answers one; port 7001 holds connections and echoes lines; port 7002
takes numbers, a datagram each.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ASK, ECHO, NUMBERS = 7000, 7001, 7002
REACH_TIMEOUT_S = 2.0
ROOM_BYTES = 1 << 20
"""For datagrams that were not read yet; the kernel takes less where its own bound is lower."""


async def main(host: Any, config: Mapping[str, Any]) -> None:
    await Probe(host, config).serve()


async def broken(host: Any, _: Mapping[str, Any]) -> None:
    """Breaks once it is asked anything, which is after it was seen to be ready."""

    asked = asyncio.Event()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readline():
            asked.set()

    await asyncio.start_server(hear, "0.0.0.0", ASK)
    await asked.wait()
    host.log("about to break")
    host.spawn(_break(), "breaking")
    await asyncio.Event().wait()


async def _break() -> None:
    raise RuntimeError("a planted panic")


def wrong_checksums() -> int:
    lines = Path("/proc/net/snmp").read_text(encoding="ascii").splitlines()
    names, values = (line.split() for line in lines if line.startswith("Udp:"))
    return int(values[names.index("InCsumErrors")])


def _state(pid: int) -> str:
    try:
        return _stat(pid)[0]
    except FileNotFoundError:
        return "gone"


def _stat(pid: int) -> list[str]:
    """From its state on."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()


class Numbers(asyncio.DatagramProtocol):
    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers

    def datagram_received(self, data: bytes, _: Any) -> None:
        self._numbers.append(int(data))


class Probe:
    def __init__(self, host: Any, config: Mapping[str, Any]) -> None:
        self.host = host
        self.config = config
        self.numbers: list[int] = []
        self.children: list[asyncio.subprocess.Process] = []
        self.taken: list[bytearray] = []
        self.held: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    async def serve(self) -> None:
        await asyncio.start_server(self._answer, "0.0.0.0", ASK)
        await asyncio.start_server(self._echo, "0.0.0.0", ECHO)
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: Numbers(self.numbers), local_addr=("0.0.0.0", NUMBERS)
        )
        # What was held comes all at once: hundreds have to fit, however late this process gets a processor.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM_BYTES)
        self.host.log("serving")
        await asyncio.Event().wait()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = json.loads(await reader.readline())
        answer = await getattr(self, f"do_{question['do']}")(question)
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
        writer.close()

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async def do_time(self, _: Mapping[str, Any]) -> Any:
        """Wall time was read between two readings of monotonic time, however long a busy machine put between them."""
        monotonic_ns, wall_ns, until_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        return {"wall_ns": wall_ns, "monotonic_ns": monotonic_ns, "monotonic_until_ns": until_ns, "pid": os.getpid()}

    async def do_keep(self, question: Mapping[str, Any]) -> Any:
        """Start another process, so many times in all, each once the one before has ended; the first one's number."""
        self.children.append(await asyncio.create_subprocess_exec(*question["argv"]))
        self.host.spawn(self._start_again(question["argv"], question["times"] - 1), "keeping a process")
        return self.children[-1].pid

    async def _start_again(self, argv: list[str], times: int) -> None:
        for _ in range(times):
            await self.children[-1].wait()
            self.children.append(await asyncio.create_subprocess_exec(*argv))

    async def do_children(self, _: Mapping[str, Any]) -> Any:
        """The state of each process that was started, as the kernel knows it."""
        return [_state(child.pid) for child in self.children]

    async def do_used(self, _: Mapping[str, Any]) -> Any:
        """Seconds that the newest child has used of a processor until now."""
        ticks = sum(map(int, _stat(self.children[-1].pid)[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    async def do_take(self, question: Mapping[str, Any]) -> Any:
        """Hold so many MB more of memory."""
        self.taken.append(bytearray(b"x") * (question["mb"] * 10**6))
        return True

    async def do_burn(self, question: Mapping[str, Any]) -> Any:
        """The share of a processor that computing gets for so many seconds."""
        start, used = time.monotonic(), time.process_time()
        while time.monotonic() - start < question["seconds"]:
            sum(range(10_000))
        return (time.process_time() - used) / (time.monotonic() - start)

    async def do_sleep(self, question: Mapping[str, Any]) -> Any:
        """What a timer of the loop takes, on the monotonic clock."""
        start = time.monotonic_ns()
        await asyncio.sleep(question["seconds"])
        return {"slept_ns": time.monotonic_ns() - start}

    async def do_reach(self, question: Mapping[str, Any]) -> Any:
        """Whether a new connection to each node comes about."""
        return dict(zip(question["to"], await asyncio.gather(*map(self._reaches, question["to"])), strict=True))

    async def _reaches(self, name: str) -> str:
        try:
            async with asyncio.timeout(REACH_TIMEOUT_S):
                _, writer = await asyncio.open_connection(name, ECHO)
        except TimeoutError:
            return "silence"
        except OSError as error:
            return type(error).__name__
        writer.close()
        return "reached"

    async def do_hold(self, question: Mapping[str, Any]) -> Any:
        self.held[question["to"]] = await asyncio.open_connection(question["to"], ECHO)
        return True

    async def do_is_held(self, question: Mapping[str, Any]) -> Any:
        """Whether a connection that is held is as good as ever, or how it ended."""
        reader, _ = self.held[question["to"]]
        try:
            async with asyncio.timeout(question["timeout_s"]):
                return "ended" if await reader.readline() == b"" else "a line"
        except TimeoutError:
            return "held"
        except OSError as error:
            return type(error).__name__

    async def do_count(self, question: Mapping[str, Any]) -> Any:
        """Send so many numbers, a datagram each, a millisecond apart."""
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=(question["to"], NUMBERS)
        )
        for number in range(question["most"]):
            transport.sendto(str(number).encode())
            await asyncio.sleep(0.001)
        transport.close()
        return True

    async def do_counted(self, _: Mapping[str, Any]) -> Any:
        """The numbers that came since this was asked last."""
        came, self.numbers[:] = list(self.numbers), []
        return came

    async def do_wrong_checksums(self, _: Mapping[str, Any]) -> Any:
        """How many datagrams the kernel has refused so far since their checksum was wrong."""
        return wrong_checksums()

    async def do_say(self, question: Mapping[str, Any]) -> Any:
        """Whether a line comes back on a connection that is held."""
        reader, writer = self.held[question["to"]]
        writer.write(b"hello\n")
        try:
            async with asyncio.timeout(question.get("timeout_s", REACH_TIMEOUT_S)):
                return (await reader.readline()).decode()
        except TimeoutError:
            return "silence"

    async def do_write(self, question: Mapping[str, Any]) -> Any:
        self.host.disk.open("kept").append(question["text"].encode())
        return True

    async def do_append(self, question: Mapping[str, Any]) -> Any:
        """Append to a file of the node's disk, and fsync it if that is wanted; why not, or nothing."""
        file = self.host.disk.open(question["path"])
        try:
            file.append(question["text"].encode())
            if question["fsync"]:
                await file.fsync()
        except OSError as error:
            return type(error).__name__
        finally:
            file.close()
        return ""

    async def do_content(self, question: Mapping[str, Any]) -> Any:
        """What is in a file of the node's disk, where there is one, or why it cannot be read."""
        if not self.host.disk.exists(question["path"]):
            return None
        file = self.host.disk.open(question["path"])
        try:
            return file.read_at(0, file.size).decode("latin-1")
        except OSError as error:
            return type(error).__name__
        finally:
            file.close()

    async def do_read(self, _: Mapping[str, Any]) -> Any:
        file = self.host.disk.open("kept")
        return file.read_at(0, file.size).decode()
