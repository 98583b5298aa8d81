"""A ring of packets keeps the newest and no more than it may; its files are pcap's."""

from __future__ import annotations

import io
import socket
import struct
from pathlib import Path

import pytest

from harness.environments.remote import capture

SECOND_NS = 10**9


def held(folder: Path) -> list[tuple[int, int, bytes]]:
    found = []
    for path in sorted(folder.glob("*.pcap")):
        with path.open("rb") as file:
            found += list(capture.records(file))
    return found


def test_what_is_collected_is_all_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FOLDER": tmp_path, "KEPT": tmp_path / "kept.pcap", "READER": tmp_path / "reader"}.items():
        monkeypatch.setattr(capture, name, str(value))
    ring = capture.Ring(str(tmp_path))
    for second in range(100):
        ring.add(second * SECOND_NS, bytes([second]))
    ring.close()
    assert capture.collect({}) == {"place": capture.KEPT, "packets": 100, "missed": 0}
    with open(capture.KEPT, "rb") as file:
        assert [at_ns // SECOND_NS for at_ns, _, _ in capture.records(file)] == list(range(100))


def test_a_flood_leaves_no_more_than_the_bound(tmp_path: Path) -> None:
    ring, packet = capture.Ring(str(tmp_path)), bytes(1500)
    for number in range(200_000):
        ring.add(number, packet)
    ring.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= capture.MOST_BYTES
    packets = held(tmp_path)
    assert packets[-1] == (199_999, 1500, bytes(capture.SNAPPED_BYTES)), "of a long packet its beginning is kept"
    assert len(packets) > 80_000


def test_a_torn_file_is_read_as_far_as_it_goes() -> None:
    whole = io.BytesIO()
    whole.write(capture.HEADER)
    capture.write(whole, 3 * SECOND_NS + 7, 4, b"abcd")
    capture.write(whole, 4 * SECOND_NS, 4, b"efgh")
    for missing in (1, 5, 19):
        torn = io.BytesIO(whole.getvalue()[:-missing])
        assert list(capture.records(torn)) == [(3 * SECOND_NS + 7, 4, b"abcd")]
    assert list(capture.records(io.BytesIO(b"no pcap at all, but quite some bytes"))) == []


def test_the_header_is_that_of_a_pcap_file_of_ip_packets_with_nanoseconds() -> None:
    assert struct.unpack("<IHHiIII", capture.HEADER) == (0xA1B23C4D, 2, 4, 0, 0, 512, 101)


def test_ports_are_those_of_tcp_over_either_ip() -> None:
    ports = struct.pack(">HH", 22, 50_000)
    tcp = bytes([0x45, *bytes(8), socket.IPPROTO_TCP, *bytes(10)]) + ports
    with_options = bytes([0x46, *bytes(8), socket.IPPROTO_TCP, *bytes(14)]) + ports
    tcp_over_6 = bytes([0x60, *bytes(5), socket.IPPROTO_TCP, *bytes(33)]) + ports
    assert capture.ports_of(tcp) == capture.ports_of(with_options) == capture.ports_of(tcp_over_6) == (22, 50_000)
    udp = bytes([0x45, *bytes(8), socket.IPPROTO_UDP, *bytes(10)]) + ports
    assert capture.ports_of(udp) == capture.ports_of(tcp[:21]) == capture.ports_of(b"") == ()


def test_a_packet_has_the_time_at_which_the_kernel_saw_it_not_that_of_its_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns, of_day_ns = 50 * SECOND_NS, 1_700_000_000 * SECOND_NS
    monkeypatch.setattr(capture, "_now_ns", lambda: (now_ns, of_day_ns))

    def stamp(ago_ns: int) -> list[tuple[int, int, bytes]]:
        seen = divmod(of_day_ns - ago_ns, SECOND_NS)
        return [(socket.SOL_SOCKET, capture.SO_TIMESTAMPNS, capture.TIMESPEC.pack(*seen))]

    assert capture._seen_ns(stamp(8_000_000), 0) == now_ns - 8_000_000
    assert capture._seen_ns(stamp(SECOND_NS), now_ns - 5) == now_ns - 5, "the clock was set: not before the last packet"
    assert capture._seen_ns(stamp(-SECOND_NS), 0) == now_ns, "nor after now"
    assert capture._seen_ns([], 7) == now_ns
