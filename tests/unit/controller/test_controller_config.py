"""A controller's settings: RocketMQ's form, and errors that name the setting."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.rocketmq.controller.protocol import MalformedRequest

PEERS = "n0-127.0.0.1:9877;n1-127.0.0.1:9878;n2-127.0.0.1:9879"


def test_the_seeds_example_is_understood():
    config = ControllerConfig.from_json(
        {
            "controllerDLegerGroup": "group1",
            "controllerDLegerPeers": PEERS,
            "controllerDLegerSelfId": "n0",
            "controllerStorePath": "DledgerController",
            "enableElectUncleanMaster": True,
            "notifyBrokerRoleChanged": False,
        }
    )
    assert config.raft().members == {"n0": "127.0.0.1:9877", "n1": "127.0.0.1:9878", "n2": "127.0.0.1:9879"}
    assert config.raft_port == 9877
    assert config.raft().directory == "DledgerController/raft"
    assert config.enable_elect_unclean_master
    assert not config.notify_broker_role_changed
    assert config.peers_text == PEERS
    assert config.request_address("n1") == "127.0.0.1:9878"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"controllerDLegerSelfId": "n9"}, "controllerDLegerSelfId"),
        ({"controllerDLegerPeers": "n0=127.0.0.1:9877"}, "controllerDLegerPeers"),
        ({"controllerDLegerPeers": "n0-a:1;n0-b:1"}, "controllerDLegerPeers"),
        ({"enableElectUncleanMaster": "yes"}, "enableElectUncleanMaster"),
        ({"raftHeartbeatInterval": 1500}, "heartbeat"),
        ({"raftSnapshotThreshold": 0}, "raftSnapshotThreshold"),
        ({"raftSnapshotThreshold": "many"}, "raftSnapshotThreshold"),
    ],
)
def test_a_wrong_setting_is_named(wrong, named):
    with pytest.raises(ValueError, match=named):
        ControllerConfig.from_json({"controllerDLegerPeers": PEERS, "controllerDLegerSelfId": "n0", **wrong})


def test_two_settings_may_change_while_it_runs_and_all_others_are_refused():
    config = ControllerConfig.from_json({"controllerDLegerPeers": PEERS, "controllerDLegerSelfId": "n0"})
    changed = config.changed({"enableElectUncleanMaster": "true"})
    assert changed.public() == {**config.public(), "enableElectUncleanMaster": "true"}
    for wrong in (
        {"controllerStorePath": "true"},
        {"enableElectUncleanMaster": "perhaps"},
        ["enableElectUncleanMaster"],
    ):
        with pytest.raises(MalformedRequest):
            config.changed(wrong)
