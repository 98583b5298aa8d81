"""Relays the packets that come to this node over impaired links: brought there, and run by the node's own Python.

    python3 relay.py ask TABLE          the relay does as the table says from now on; prints one line of JSON
    python3 relay.py try {}             whether packets can be relayed here; prints one line of JSON
    python3 relay.py reset ADDRESSES    ends the connections with these addresses by RST; prints one line of JSON
    python3 relay.py end {}             ends the relay: what it kept is lost, what comes passes

A rule of iptables hands over what arrives from an impaired address (NFQUEUE), before anything else is asked of it. The
relay answers for each packet when its time has come, so that delay, jitter, loss, rates and the rest exist on machines
whose kernel cannot shape traffic by itself. Where the relay has died the kernel lets packets pass, and `ask` says so.

A table is JSON: address -> impairments, each with a number, its kind, and its amounts as in
`harness/environments/impairment.py`. Packets that were kept for an impairment that is no more wait for it no longer.

Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import heapq
import itertools
import json
import os
import random
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

STATE = "/dev/shm/stormproof"
RELAY, ASKED = f"{STATE}/relay", f"{STATE}/relay.sock"
"""The relay's process, as the agent notes processes; where it is asked."""
QUEUE, MARK = 21359, 0x53747270
"""The number of the queue, and the mark of packets that the relay itself has made."""
LONGEST_QUEUE = 65_536
"""So many packets wait at most; what comes on top is lost, as at a router whose memory is full."""
RECEIVE_BYTES = 8 << 20
STARTS_WITHIN_S = 10.0
ANSWERS_WITHIN_S = 10.0

NETLINK_NETFILTER, NETLINK_SOCK_DIAG, SOL_NETLINK, NETLINK_NO_ENOBUFS, SO_RCVBUFFORCE = 12, 4, 270, 5, 33
NLMSG_ERROR, NLMSG_DONE, REQUEST, ACKNOWLEDGED, DUMP = 2, 3, 1, 4, 0x300
QUEUE_PACKET, QUEUE_VERDICT, QUEUE_CONFIG = (3 << 8), (3 << 8) | 1, (3 << 8) | 2
CONFIG_COMMAND, CONFIG_COPY, CONFIG_LENGTH = 1, 2, 3
OF_PACKET, OF_VERDICT, OF_PAYLOAD = 1, 2, 10
COPY_PACKET, WHOLE_PACKET = 2, 0xFFFF
DROP, ACCEPT = 0, 1
SOCK_DIAG_BY_FAMILY, SOCK_DESTROY = 20, 21
ENDED_STATES = (1 << 6) | (1 << 7) | (1 << 10)
"""States of TCP: those that wait their time out, closed ones, and those that only listen."""

Answer = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    verb, given = arguments
    if verb == "serve":
        return Relay().serve(int(given))
    answer = {"ask": ask, "try": find_out, "reset": reset, "end": end}[verb](json.loads(given))
    print(json.dumps(answer), flush=True)
    return 0


# Netlink


def _attribute(kind: int, payload: bytes) -> bytes:
    padding = b"\0" * (-len(payload) % 4)
    return struct.pack("=HH", 4 + len(payload), kind) + payload + padding


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, place)
        if length < 4:
            return
        yield kind & 0x3FFF, data[place + 4 : place + length]
        place += length + (-length % 4)


def _message(kind: int, flags: int, payload: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(payload), kind, flags, 0, 0) + payload


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, place)
        if length < 16:
            return
        yield kind, data[place + 16 : place + length]
        place += length + (-length % 4)


def _require_done(answer: socket.socket, what: str) -> None:
    for kind, payload in _messages(answer.recv(65_536)):
        if kind == NLMSG_ERROR and (code := -struct.unpack_from("=i", payload)[0]):
            raise SystemExit(f"{what}: {os.strerror(code)}")


# The relay


class Relay:
    """One process a node, which ends when it is killed."""

    def __init__(self) -> None:
        self._draw = random.Random()
        self._table: dict[str, list[Impairment]] = {}
        self._waiting: list[tuple[float, Packet]] = []
        """A heap: when each packet is let go."""
        self._held: list[Packet] = []
        self._latest: dict[str, float] = {}
        """Address -> when the last of its packets is let go that none may overtake."""
        self._places = itertools.count()
        self._queue = _bound_queue()
        self._copies = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self._copies.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)

    def serve(self, started: int) -> int:
        """Until killed; a byte on `started` says that packets are taken from now on."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(ASKED)
        asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        asked.bind(ASKED)
        asked.listen()
        os.write(started, b"+")
        os.close(started)
        with selectors.DefaultSelector() as ready:
            ready.register(self._queue, selectors.EVENT_READ)
            ready.register(asked, selectors.EVENT_READ)
            while True:
                until = self._waiting[0][0] - time.monotonic() if self._waiting else None
                found = [key.fileobj for key, _ in ready.select(None if until is None else max(0.0, until))]
                if self._queue in found:
                    self._take()
                if asked in found:
                    self._answer(asked)
                self._let_go(time.monotonic())

    def _answer(self, asked: socket.socket) -> None:
        who, _ = asked.accept()
        with who, who.makefile("rw", encoding="utf-8") as words, contextlib.suppress(OSError, ValueError):
            words.write(json.dumps(self.change(json.loads(words.readline()))) + "\n")

    def change(self, table: Answer) -> Answer:
        """Take a new table; answers how many packets each impairment that is no more has struck."""
        now = time.monotonic()
        known = {one.number: one for ones in self._table.values() for one in ones}
        self._table = {
            source: [known.pop(one["number"]) if one["number"] in known else Impairment(one, now) for one in ones]
            for source, ones in table.items()
        }
        kept = sorted((*self._held, *(packet for _, packet in self._waiting)))
        self._held, self._waiting, self._latest = [], [], {}
        for packet in kept:
            packet.forget(known)
            self._keep(packet, now)
        return {"struck": {str(number): one.struck for number, one in known.items()}}

    def _take(self) -> None:
        try:
            received = self._queue.recv(1 << 18)
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                return  # the kernel has dropped what found no room
            raise
        now = time.monotonic()
        for kind, message in _messages(received):
            if kind == QUEUE_PACKET:
                found = dict(_attributes(message[4:]))
                self._relay(struct.unpack_from(">I", found[OF_PACKET])[0], found.get(OF_PAYLOAD, b""), now)

    def _relay(self, number: int, data: bytes, now: float) -> None:
        source = socket.inet_ntoa(data[12:16])
        packet = Packet(next(self._places), number, source, now)
        for impairment in self._table.get(source, ()):
            impairment.strike(packet, len(data), now, self._draw)
        if packet.is_lost:
            self._verdict(DROP, number, None)
            return
        if packet.is_corrupted:
            packet.changed = _with_one_bit_flipped(data, self._draw)
        if packet.is_doubled:
            # From here on by the kernel's own way to this very machine; without a word where there is none.
            with contextlib.suppress(OSError):
                self._copies.sendto(data, (socket.inet_ntoa(data[16:20]), 0))
        self._keep(packet, now)

    def _keep(self, packet: Packet, now: float) -> None:
        """Until its time has come, or it is no longer held."""
        if packet.held_by:
            self._held.append(packet)
            return
        due = packet.arrived + sum(packet.delays.values())
        if not packet.is_overtaken:
            # None comes before those that were sent before it, whatever was drawn for each.
            due = self._latest[packet.source] = max(due, self._latest.get(packet.source, due))
        if due <= now:
            self._verdict(ACCEPT, packet.number, packet.changed)
        else:
            heapq.heappush(self._waiting, (due, packet))

    def _let_go(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            packet = heapq.heappop(self._waiting)[1]
            self._verdict(ACCEPT, packet.number, packet.changed)

    def _verdict(self, verdict: int, number: int, changed: bytes | None) -> None:
        attributes = _attribute(OF_VERDICT, struct.pack(">II", verdict, number))
        if changed is not None:
            attributes += _attribute(OF_PAYLOAD, changed)
        header = struct.pack(">BBH", 0, 0, QUEUE)
        self._queue.send(_message(QUEUE_VERDICT, REQUEST, header + attributes))


@functools.total_ordering
class Packet:
    """One that came over an impaired link, with what the impairments make of it."""

    def __init__(self, place: int, number: int, source: str, arrived: float) -> None:
        """`place`: among all packets; `number`: in the queue."""
        self.place, self.number, self.source, self.arrived = place, number, source, arrived
        self.changed: bytes | None = None
        """What it is to be, where not as it came."""
        self.delays: dict[int, float] = {}
        """Impairment -> how long it makes the packet wait."""
        self.held_by: set[int] = set()
        self.is_lost = self.is_doubled = self.is_corrupted = self.is_overtaken = False

    def __lt__(self, other: Packet) -> bool:
        return self.place < other.place

    def forget(self, impairments: Container[int]) -> None:
        """Wait no longer for those that are no more."""
        self.delays = {number: delay for number, delay in self.delays.items() if number not in impairments}
        self.held_by = {number for number in self.held_by if number not in impairments}


class Impairment:
    """One of a link's, with how many packets it has struck."""

    def __init__(self, row: Answer, now: float) -> None:
        self.number: int = row["number"]
        self.kind: str = row["kind"]
        self.struck = 0
        self._row = row
        self._since = self._free = now
        self._strike: Callable[[Packet, int, float, random.Random], bool] = {
            "slow-links": self._slow,
            "lossy-links": self._lossy,
            "narrow-links": self._narrow,
            "flapping-links": self._flapping,
            "held-links": self._held,
            "duplicating-links": self._duplicating,
            "corrupting-links": self._corrupting,
            "reordering-links": self._reordering,
        }[self.kind]

    def strike(self, packet: Packet, size: int, now: float, draw: random.Random) -> None:
        self.struck += self._strike(packet, size, now, draw)

    def _slow(self, packet: Packet, size: int, now: float, draw: random.Random) -> bool:
        packet.delays[self.number] = (self._row["delay_ms"] + self._row["jitter_ms"] * draw.random()) / 1e3
        return True

    def _lossy(self, packet: Packet, size: int, now: float, draw: random.Random) -> bool:
        struck: bool = draw.random() < self._row["share"]
        packet.is_lost |= struck
        return struck

    def _narrow(self, packet: Packet, size: int, now: float, draw: random.Random) -> bool:
        self._free = max(self._free, now) + size / self._row["bytes_per_s"]
        packet.delays[self.number] = self._free - now
        return True

    def _flapping(self, packet: Packet, size: int, now: float, draw: random.Random) -> bool:
        down_ms, up_ms = self._row["down_ms"], self._row["up_ms"]
        struck: bool = (now - self._since) * 1e3 % (down_ms + up_ms) < down_ms
        packet.is_lost |= struck
        return struck

    def _held(self, packet: Packet, size: int, now: float, draw: random.Random) -> bool:
        packet.held_by.add(self.number)
        return True

    def _duplicating(self, packet: Packet, size: int, now: float, draw: random.Random) -> bool:
        struck: bool = draw.random() < self._row["share"]
        packet.is_doubled |= struck
        return struck

    def _corrupting(self, packet: Packet, size: int, now: float, draw: random.Random) -> bool:
        struck: bool = draw.random() < self._row["share"]
        packet.is_corrupted |= struck
        return struck

    def _reordering(self, packet: Packet, size: int, now: float, draw: random.Random) -> bool:
        struck: bool = draw.random() < self._row["share"]
        if struck:
            packet.delays[self.number] = self._row["delay_ms"] / 1e3
            packet.is_overtaken = True
        return struck


def _with_one_bit_flipped(packet: bytes, draw: random.Random) -> bytes:
    """Behind the header of IP, so that the packet still arrives where it should; no checksum is made anew."""
    begin = (packet[0] & 0x0F) * 4
    if len(packet) <= begin:
        return packet
    flipped = bytearray(packet)
    flipped[draw.randrange(begin, len(packet))] ^= 1 << draw.randrange(8)
    return bytes(flipped)


def _bound_queue() -> socket.socket:
    """Raises SystemExit with what this kernel has not."""
    try:
        queue = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    except OSError as error:
        raise SystemExit(f"the kernel has no netfilter queues: {error.strerror}") from None
    queue.bind((0, 0))
    queue.settimeout(ANSWERS_WITHIN_S)
    for attributes in (
        _attribute(CONFIG_COMMAND, struct.pack(">BBH", 1, 0, socket.AF_INET)),
        _attribute(CONFIG_COPY, struct.pack(">IB", WHOLE_PACKET, COPY_PACKET)),
        _attribute(CONFIG_LENGTH, struct.pack(">I", LONGEST_QUEUE)),
    ):
        header = struct.pack(">BBH", 0, 0, QUEUE)
        queue.send(_message(QUEUE_CONFIG, REQUEST | ACKNOWLEDGED, header + attributes))
        _require_done(queue, "the kernel gives no packets to a queue")
    queue.settimeout(None)
    queue.setsockopt(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)
    for option in (socket.SO_RCVBUF, SO_RCVBUFFORCE):
        with contextlib.suppress(OSError):
            queue.setsockopt(socket.SOL_SOCKET, option, RECEIVE_BYTES)
    return queue


# Asked by the harness


def ask(table: Answer) -> Answer:
    """Start the relay where there is none and the table asks for something; hand the table over.

    `lost`: a relay that knew of impairments has ended, and with it they have.
    """
    process, was_there = _alive(), os.path.exists(RELAY)
    if process is None:
        if not table:
            return {"struck": {}, "lost": was_there}
        _start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as relay:
        relay.settimeout(ANSWERS_WITHIN_S)
        relay.connect(ASKED)
        with relay.makefile("rw", encoding="utf-8") as words:
            words.write(json.dumps(table) + "\n")
            words.flush()
            return {**json.loads(words.readline()), "lost": process is None and was_there}


def find_out(_: Answer) -> Answer:
    """Raises SystemExit with what is missing."""
    if _alive() is None:
        _start()
        end({})
    return {}


def end(_: Answer) -> Answer:
    process = _alive()
    if process is not None:
        os.kill(process, signal.SIGKILL)
    for place in (RELAY, ASKED):
        with contextlib.suppress(FileNotFoundError):
            os.remove(place)
    return {"ended": process is not None}


def _start() -> None:
    started, says = os.pipe()
    command = [sys.executable, "-I", "-S", __file__, "serve", str(says)]
    quiet = subprocess.DEVNULL
    relay = subprocess.Popen(
        command, stdin=quiet, stdout=quiet, stderr=subprocess.PIPE, pass_fds=[says], start_new_session=True
    )
    os.close(says)
    with os.fdopen(started, "rb") as came:
        if not came.read(1):
            words = relay.communicate(timeout=STARTS_WITHIN_S)[1].decode(errors="replace").strip()
            raise SystemExit(f"packets cannot be relayed here: {words.rpartition(chr(10))[2]}")
    with open(f"/proc/{relay.pid}/stat", encoding="ascii", errors="replace") as file:
        born = file.read().rpartition(")")[2].split()[19]
    with open(f"{RELAY}.new", "w", encoding="ascii") as file:
        file.write(f"{relay.pid} {born}")
    os.replace(f"{RELAY}.new", RELAY)


def _alive() -> int | None:
    try:
        with open(RELAY, encoding="ascii") as file:
            process, born = file.read().split()
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return int(process) if fields[19] == born and fields[0] not in "ZX" else None


# Connections


def reset(arguments: Answer) -> Answer:
    """End all connections with these addresses, at both ends: the kernel here sends an RST and forgets them.

    `spared_ports`: of this machine, connections to which stay. Answers how many of each address were ended.
    """
    ended: Counter[str] = Counter()
    spared = set(arguments["spared_ports"])
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.bind((0, 0))
        kernel.settimeout(ANSWERS_WITHIN_S)
        for family in (socket.AF_INET, socket.AF_INET6):
            for identity, address, ports in _connections(kernel, family):
                if address in arguments["addresses"] and not spared & set(ports) and _ended(kernel, family, identity):
                    ended[address] += 1
    return {"ended": dict(ended)}


def _connections(kernel: socket.socket, family: int) -> list[tuple[bytes, str, tuple[int, int]]]:
    """What names each connection of TCP to the kernel, with whom it is, and its two ports."""
    states = 0xFFF & ~ENDED_STATES
    request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, states) + b"\0" * 48
    kernel.send(_message(SOCK_DIAG_BY_FAMILY, REQUEST | DUMP, request))
    found: list[tuple[bytes, str, tuple[int, int]]] = []
    while True:
        for kind, payload in _messages(kernel.recv(1 << 18)):
            if kind == NLMSG_DONE:
                return found
            if kind == NLMSG_ERROR:
                why = os.strerror(-struct.unpack_from("=i", payload)[0])
                raise SystemExit(f"the kernel names no connections: {why}")
            identity = payload[4:52]
            ports = struct.unpack_from(">HH", identity)
            found.append((identity, _address(family, identity[20:36]), (ports[0], ports[1])))


def _address(family: int, raw: bytes) -> str:
    """Of IPv4, also where a socket of IPv6 speaks it."""
    if family == socket.AF_INET:
        return socket.inet_ntoa(raw[:4])
    mapped = raw[:12] == b"\0" * 10 + b"\xff\xff"
    return socket.inet_ntoa(raw[12:]) if mapped else socket.inet_ntop(socket.AF_INET6, raw)


def _ended(kernel: socket.socket, family: int, identity: bytes) -> bool:
    """False where the connection had ended by itself."""
    request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 0xFFF) + identity
    kernel.send(_message(SOCK_DESTROY, REQUEST | ACKNOWLEDGED, request))
    for kind, payload in _messages(kernel.recv(65_536)):
        if kind == NLMSG_ERROR and (code := -struct.unpack_from("=i", payload)[0]):
            if code == errno.ENOENT:
                return False
            raise SystemExit(f"the kernel ends no connections (CONFIG_INET_DIAG_DESTROY): {os.strerror(code)}")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
