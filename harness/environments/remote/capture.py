"""Keeps the packets of a node: copied there and run by the node's own Python, one verb a call.

    python3 capture.py VERB JSON        prints one line of JSON

What arrives at the machine and what leaves it is read from sockets of the kernel (AF_PACKET), before any rule drops it,
and written into files in pcap's format, of which only the newest are kept: 64 MB. Of a packet the first 512 bytes are
kept, from its IP header on. Times are the kernel's, when it saw the packet (not those at which this process got to read
it), told by CLOCK_MONOTONIC.

Standard library only.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, BinaryIO, NoReturn

FOLDER = "/var/lib/stormproof/log/packets"
"""Lies beside the node's log, where it stays when the node's data is lost."""
KEPT = f"{FOLDER}/kept.pcap"
READER = "/dev/shm/stormproof/capture"
MOST_BYTES, SEGMENT_BYTES = 64_000_000, 2_000_000
SNAPPED_BYTES = 512
MAGIC_OF_NANOSECONDS, LINKTYPE_RAW = 0xA1B23C4D, 101
HEADER = struct.pack("<IHHiIII", MAGIC_OF_NANOSECONDS, 2, 4, 0, 0, SNAPPED_BYTES, LINKTYPE_RAW)
RECORD = struct.Struct("<IIII")
ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 0x0003, 0x0800, 0x86DD
SOL_PACKET, PACKET_STATISTICS, PACKET_OUTGOING = 263, 6, 4
SO_RCVBUFFORCE, QUEUE_BYTES = 33, 8 << 20
SO_TIMESTAMPNS, TIMESPEC = 35, struct.Struct("@qq")
FLUSHED_EVERY_S = 0.2
PATIENCE_S = 10.0
SECOND_NS = 1_000_000_000

Answer = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    verb, given = arguments
    print(json.dumps(VERBS[verb](json.loads(given))), flush=True)
    return 0


def begin(arguments: Answer) -> Answer:
    """Start to keep packets; `spared_ports`: connections of TCP to or from these ports are left out."""
    end({})
    os.makedirs(FOLDER, exist_ok=True)
    os.makedirs(os.path.dirname(READER), exist_ok=True)
    command = [sys.executable, "-I", "-S", __file__, "read", json.dumps(dict(arguments))]
    reader = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert reader.stdout is not None and reader.stderr is not None
    if not reader.stdout.readline():
        why = reader.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
        raise SystemExit(f"packets cannot be captured here: {why}")
    with open(READER, "w", encoding="ascii") as file:
        file.write(f"{reader.pid} {_started(reader.pid)}")
    return {"reader": reader.pid}


def end(_: Answer) -> Answer:
    """Keep no more packets; what was kept stays. Whether any were being kept."""
    reader = _reader()
    if reader is None:
        return {"was_reading": False}
    os.kill(reader, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_S
    while _reader() is not None:
        if time.monotonic() > deadline:
            os.kill(reader, signal.SIGKILL)
        time.sleep(0.01)
    return {"was_reading": True}


def collect(_: Answer) -> Answer:
    """End, and put all packets that are kept into one file; answers where, and how many.

    `missed`: packets that came faster than they could be read.
    """
    end({})
    packets = 0
    with open(f"{KEPT}.new", "wb") as kept:
        kept.write(HEADER)
        for path in _segments():
            with open(path, "rb") as file:
                for packet in records(file):
                    write(kept, *packet)
                    packets += 1
    os.replace(f"{KEPT}.new", KEPT)
    missed = 0
    with contextlib.suppress(OSError, ValueError), open(f"{FOLDER}/missed", encoding="ascii") as file:
        missed = int(file.read())
    return {"place": KEPT, "packets": packets, "missed": missed}


def read(arguments: Answer) -> NoReturn:
    """Until SIGTERM comes."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    spared = set(arguments["spared_ports"])
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as kernel:
        with contextlib.suppress(OSError):
            kernel.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE_BYTES)
        kernel.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        print("reading", flush=True)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
        ring = Ring(FOLDER)
        try:
            while True:
                _read_one(kernel, ring, spared)
        finally:
            ring.close()
            dropped = struct.unpack("II", kernel.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
            with open(f"{FOLDER}/missed", "w", encoding="ascii") as file:
                file.write(str(dropped))


def _read_one(kernel: socket.socket, ring: Ring, spared: AbstractSet[int]) -> None:
    if not select.select([kernel], [], [], FLUSHED_EVERY_S)[0]:
        ring.flush(time.monotonic_ns())
        return
    data, beside, _, (interface, protocol, kind, *_) = kernel.recvmsg(1 << 16, socket.CMSG_SPACE(TIMESPEC.size))
    # What a machine sends to itself is seen when it leaves and when it arrives.
    is_seen_twice = interface == "lo" and kind == PACKET_OUTGOING
    if protocol in (ETH_P_IP, ETH_P_IPV6) and not is_seen_twice and not spared & set(ports_of(data)):
        ring.add(_seen_ns(beside, ring.last_ns), data)


def _seen_ns(beside: Sequence[tuple[int, int, bytes]], before_ns: int) -> int:
    """When the kernel saw a packet that has just been read, by CLOCK_MONOTONIC.

    The kernel tells it by the clock of the day, which may be set between its seeing and our reading: so never before
    the packet that came before, and never after now.
    """
    now_ns, of_day_ns = _now_ns()
    waited_ns = 0
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = TIMESPEC.unpack(data)
            waited_ns = of_day_ns - (seconds * SECOND_NS + nanoseconds)
    return min(max(now_ns - waited_ns, before_ns), now_ns)


def _now_ns() -> tuple[int, int]:
    """The same moment by CLOCK_MONOTONIC and by the clock of the day, to 0.1 ms: a busy machine may hold us between."""
    while True:
        before_ns, of_day_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after_ns - before_ns < 100_000:
            return after_ns, of_day_ns


def ports_of(packet: bytes) -> tuple[int, ...]:
    """Both ports of a packet of TCP; none of others."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20 and packet[9] == socket.IPPROTO_TCP:
        start = (packet[0] & 15) * 4
    elif version == 6 and len(packet) >= 40 and packet[6] == socket.IPPROTO_TCP:
        start = 40
    else:
        return ()
    return struct.unpack_from(">HH", packet, start) if len(packet) >= start + 4 else ()


class Ring:
    """Files one after the other, the oldest of which go."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._number = 0
        self._file: BinaryIO | None = None
        self._bytes = self._flushed_ns = 0
        self.last_ns = 0
        """When the newest packet passed."""
        self._full: list[tuple[str, int]] = []
        """Of each file that is full: its path and its length."""

    def add(self, at_ns: int, packet: bytes) -> None:
        self.last_ns = at_ns
        if self._file is None or self._bytes > SEGMENT_BYTES:
            self._next()
        assert self._file is not None
        self._bytes += write(self._file, at_ns, len(packet), packet[:SNAPPED_BYTES])
        if at_ns - self._flushed_ns > FLUSHED_EVERY_S * SECOND_NS:
            self.flush(at_ns)

    def flush(self, at_ns: int) -> None:
        """Readers of the files then find all that was captured until now."""
        self._flushed_ns = at_ns
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _next(self) -> None:
        if self._file is not None:
            self._file.close()
            self._full.append((self._file.name, self._bytes))
        self._number += 1
        self._file = open(f"{self._folder}/{self._number:06}.pcap", "wb")  # noqa: SIM115  # closed with the ring
        self._bytes = self._file.write(HEADER)
        self._forget()

    def _forget(self) -> None:
        """What is too much."""
        held = self._bytes + sum(length for _, length in self._full)
        while self._full and held > MOST_BYTES - SEGMENT_BYTES:
            path, length = self._full.pop(0)
            os.remove(path)
            held -= length


def write(file: BinaryIO, at_ns: int, length: int, kept: bytes) -> int:
    """One packet of so many bytes; how many were written."""
    return file.write(RECORD.pack(at_ns // SECOND_NS, at_ns % SECOND_NS, len(kept), length) + kept)


def records(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Of each packet its time in ns, its length, and what was kept of it; a torn end is left out."""
    if file.read(len(HEADER)) != HEADER:
        return
    while len(head := file.read(RECORD.size)) == RECORD.size:
        seconds, nanoseconds, kept, length = RECORD.unpack(head)
        data = file.read(kept)
        if len(data) < kept:
            return
        yield seconds * SECOND_NS + nanoseconds, length, data


def _segments() -> list[str]:
    return sorted(glob.glob(f"{FOLDER}/[0-9]*.pcap"))


def _reader() -> int | None:
    try:
        with open(READER, encoding="ascii") as file:
            pid, started = file.read().split()
    except (OSError, ValueError):
        return None
    return int(pid) if _started(int(pid)) == started else None


def _started(pid: int) -> str:
    """When it began; empty where there is none, or only its zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


VERBS: Mapping[str, Callable[[Answer], Answer]] = {verb.__name__: verb for verb in (begin, end, collect, read)}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
