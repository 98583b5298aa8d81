"""Settings of nodes of CMQ."""

from __future__ import annotations

import pytest

from system_under_test.cmq.config import CmqConfig
from system_under_test.node.settings import read_config

GIVEN = {"peers": "n1-a:9300;n2-b:9301;n3-c:9302", "selfId": "n2"}


def test_settings_are_read_by_their_names():
    config = read_config(CmqConfig, {**GIVEN, "groups": 5, "visibility": 1_500})
    assert (config.port, config.groups, config.visibility_s) == (9301, 5, 1.5)
    raft = config.raft(2)
    assert (raft.group, raft.directory, raft.log) == (2, "cmq/2", "g2")
    assert raft.members == {"n1": "a:9300", "n2": "b:9301", "n3": "c:9302"}


def test_a_node_that_joins_is_no_member_of_its_own_accord():
    assert "n2" not in read_config(CmqConfig, {**GIVEN, "joins": True}).raft(1).members


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"groups": 0}, "groups: expected a whole number from 1 to 256, got 0"),
        (
            {"minElectionTimeout": 199},
            "minElectionTimeout: expected at least two of heartbeatInterval, 200 ms, got 199",
        ),
        ({"maxElectionTimeout": 299}, "expected heartbeat < least election timeout"),
        ({"fileBytes": 1024, "messageBytes": 1024}, "fileBytes: expected at least 1040, for a message of messageBytes"),
        ({"selfId": "n4"}, "selfId: expected one of n1, n2, n3"),
        ({"mostQueues": 0}, "mostQueues: expected a whole number from 1 to 4096, got 0"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, object], words: str):
    with pytest.raises(ValueError, match=words):
        read_config(CmqConfig, {**GIVEN, **wrong})
