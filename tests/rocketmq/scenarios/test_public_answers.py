"""Our clients understand what published releases of RocketMQ answer, played back from transcripts of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from system_under_test.runtime.real import RealHost
from tests.rocketmq.scenarios.public_answers import (
    BROKER,
    CONTROLLER,
    FIXED_MS,
    GROUP,
    INVISIBLE_MS,
    Heard,
    PlayingNetwork,
    Tape,
    conversation,
    neutral,
)
from tests.rocketmq.scenarios.test_public_transcripts import exchanges

RELEASES = ("5.1.0", "5.1.4", "5.2.0", "5.4.0")


def heard_of(release: str, place: Path) -> Heard:
    async def story() -> Heard:
        host: Any = RealHost("listener", place)
        host.network = PlayingNetwork([bytes.fromhex(one.answered) for one in exchanges(f"release-{release}")])
        heard = await conversation(host, Tape())
        assert host.network.answers == []
        return heard

    return asyncio.run(story())


@pytest.mark.parametrize("release", RELEASES)
def test_our_clients_understand_a_release(release: str, tmp_path: Path) -> None:
    heard = heard_of(release, tmp_path)
    (group,) = heard.groups
    assert (group.cluster, group.name, dict(group.brokers)) == ("stormproof", GROUP, {0: BROKER})
    assert heard.metadata.is_active
    assert heard.metadata.leader_address == CONTROLLER
    state = heard.states[GROUP]
    assert state.info.master_address == BROKER
    assert 1 <= heard.epochs.entries[-1].master_epoch <= state.info.master_epoch
    assert [replica.broker_id for replica in state.in_sync] == [state.info.master_id]
    assert all(replica.is_alive for replica in state.in_sync)
    assert state.not_in_sync == ()
    (route,) = heard.route.groups
    assert (route.broker_name, route.master, route.read_queues, route.write_queues) == (GROUP, BROKER, 1, 1)
    assert (heard.sent.queue_id, heard.sent.queue_offset, heard.sent.broker) == (0, 0, BROKER)
    assert heard.pulled.messages == ((0, b"one"),)
    assert heard.epochs.group == GROUP
    assert heard.runtime["brokerVersionDesc"] == f"V{release.replace('.', '_')}"


@pytest.mark.parametrize("release", RELEASES)
def test_our_clients_understand_how_a_release_pops(release: str, tmp_path: Path) -> None:
    heard = heard_of(release, tmp_path)
    (message,) = heard.popped.messages
    assert (message.body, message.reconsume_times) == (b"one", 0)
    assert (message.handle.pop_time_ms, message.handle.invisible_ms) == (FIXED_MS, INVISIBLE_MS)
    assert heard.changed.handle.invisible_ms == 2 * INVISIBLE_MS
    assert heard.changed.handle.offset == message.handle.offset


def test_what_differs_between_machines_is_taken_out_and_lengths_fit() -> None:
    header, body = b'{"code":0,"at":"1795731587452"}', b"127.0.0.1:10911 and 127.0.0.1:9878" + bytes([0, 0, 1, 0xA2])
    frame = (4 + len(header) + len(body) + 4).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + body
    frame += b"\x01\x02\x03\x04"
    result = neutral(frame)
    assert b'"at":"1700000000000"' in result
    assert result.endswith(b"b1:10911 and c1:9878" + FIXED_MS.to_bytes(8, "big"))
    assert int.from_bytes(result[:4], "big") == len(result) - 4
