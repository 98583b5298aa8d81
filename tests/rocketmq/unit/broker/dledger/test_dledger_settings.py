"""Settings of brokers above a DLedger group, and what of them contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest

from system_under_test.node.settings import read_config
from system_under_test.rocketmq.broker.config import BrokerConfig

GROUP: dict[str, Any] = {
    "enableDLegerCommitLog": True,
    "dLegerGroup": "g",
    "dLegerPeers": "n0-a:40911;n1-b:40911;n2-c:40911",
    "dLegerSelfId": "n1",
}


def test_a_follower_goes_by_its_number_plus_one_and_the_member_is_set_by_the_brokers_names() -> None:
    config = read_config(
        BrokerConfig,
        {
            **GROUP,
            "enableBatchPush": True,
            "preferredLeaderIds": "n2",
            "mappedFileSizeCommitLog": 8192,
            "ackDurable": True,
        },
    )
    assert config.dledger.broker_id == 2
    member = config.member_config()
    assert (member.group, member.node, member.batches, member.data_file_bytes) == ("g", "n1", True, 8192)
    assert member.core().preferred == ("n2",)
    assert member.core().ack_durable


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"enableControllerMode": True, "controllerAddr": "c:9878"},
            "expected false where enableControllerMode is true",
        ),
        ({"flushDiskType": "SYNC_FLUSH"}, "flushDiskType: expected ASYNC_FLUSH where enableDLegerCommitLog is true"),
        ({"readUnCommitted": True}, "readUnCommitted: expected false where enableDLegerCommitLog is true"),
        ({"dLegerSelfId": "first"}, "dLegerSelfId: expected a letter and a number, as n0, got 'first'"),
        ({"dLegerSelfId": "n7"}, "expected n7, which selfId names, among n0, n1, n2"),
        ({"dLegerPeers": "n0-a:1;n1-a:1"}, "two members have the address a:1"),
        ({"preferredLeaderIds": "n9"}, "preferredLeaderIds: n9 is none of the members n0, n1, n2"),
        ({"storeType": "MEMORY"}, "storeType: expected FILE"),
    ],
)
def test_what_contradicts_itself_is_refused_by_name(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_config(BrokerConfig, {**GROUP, **settings})


def test_without_a_group_its_settings_mean_nothing() -> None:
    assert not read_config(BrokerConfig, {"dLegerSelfId": "first"}).dledger.is_on
