"""Settings of the metadata store's nodes."""

from __future__ import annotations

import pytest

from system_under_test.metadata.config import MetadataConfig
from system_under_test.node.settings import read_config

GIVEN = {"metadataPeers": "m1-a:9200;m2-b:9201", "metadataSelfId": "m2"}


def test_settings_are_read_by_their_names():
    config = read_config(MetadataConfig, {**GIVEN, "sessionTimeout": 4_000, "sessionHeartbeat": 2_000})
    assert (config.port, config.session_timeout_s, config.session_heartbeat_s) == (9201, 4.0, 2.0)
    assert config.raft().members == {"m1": "a:9200", "m2": "b:9201"}
    assert config.raft().directory == "metadata/raft"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sessionTimeout": 3_999, "sessionHeartbeat": 2_000}, "sessionTimeout: expected at least two heartbeats"),
        ({"metadataSelfId": "m3"}, "metadataSelfId: expected one of m1, m2"),
        ({"metadataPeers": "m1-a:9200;m1-b:9200"}, "metadataPeers: expected `id-host:port"),
        ({"metadataPeers": "m2:9200"}, "metadataPeers: expected `id-host:port"),
        ({"raftHeartbeatInterval": 2_000}, "expected heartbeat < least election timeout"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, object], words: str):
    with pytest.raises(ValueError, match=words):
        read_config(MetadataConfig, {**GIVEN, **wrong})
