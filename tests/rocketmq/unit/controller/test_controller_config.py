"""A controller's settings: RocketMQ's form, and errors that name the setting."""

from __future__ import annotations

from typing import ClassVar

import pytest

from system_under_test.node.settings import read_config
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingError
from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.rocketmq.controller.protocol import MalformedRequest

PEERS = "n0-127.0.0.1:9877;n1-127.0.0.1:9878;n2-127.0.0.1:9879"


def test_the_seeds_example_is_understood():
    config = read_config(
        ControllerConfig,
        {
            "controllerDLegerGroup": "group1",
            "controllerDLegerPeers": PEERS,
            "controllerDLegerSelfId": "n0",
            "controllerStorePath": "DledgerController",
            "enableElectUncleanMaster": True,
            "notifyBrokerRoleChanged": False,
        },
    )
    assert config.raft().members == {"n0": "127.0.0.1:9877", "n1": "127.0.0.1:9878", "n2": "127.0.0.1:9879"}
    assert config.raft_port == 9877
    assert config.raft().directory == "DledgerController/raft"
    assert config.enable_elect_unclean_master
    assert not config.notify_broker_role_changed
    assert config.peers_text == PEERS
    assert config.request_address("127.0.0.1:9878") == "127.0.0.1:9878"


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
        read_config(ControllerConfig, {"controllerDLegerPeers": PEERS, "controllerDLegerSelfId": "n0", **wrong})


CONFIG = read_config(ControllerConfig, {"controllerDLegerPeers": PEERS, "controllerDLegerSelfId": "n0"})


@pytest.mark.parametrize(
    ("name", "text", "printed"),
    [
        ("enableElectUncleanMaster", "TRUE", "true"),
        ("notifyBrokerRoleChanged", "false", "false"),
        ("brokerHeartbeatTimeout", "2500", "2500"),
        ("scanInactiveMasterInterval", "1", "1"),
        ("scanNotActiveBrokerInterval", "2147483647", "2147483647"),
        ("electMasterMaxRetryCount", "5", "5"),
        ("controllerApplyTimeout", "0700", "700"),
    ],
)
def test_some_settings_may_change_while_it_runs(name, text, printed):
    changed = CONFIG.changed({name: text})
    assert CONFIG.public()[name] != printed
    assert changed.public() == {**CONFIG.public(), name: printed}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "at least one"),
        ({"enableElectUncleanMaster": "perhaps"}, "enableElectUncleanMaster: expected true or false, got 'perhaps'"),
        ({"controllerApplyTimeout": "0"}, "from 1"),
        ({"controllerApplyTimeout": "2147483648"}, "to 2147483647"),
        ({"controllerApplyTimeout": "9" * 5_000}, "controllerApplyTimeout"),
        ({"electMasterMaxRetryCount": "٣"}, "whole number"),
        ({"notifyBrokerRoleChanged": "false", "": "x"}, "no setting ''"),
        ({"enableElectUncleanMasters": "true"}, "did you mean enableElectUncleanMaster"),
    ],
)
def test_what_is_no_setting_or_no_value_is_refused_with_what_was_expected(changes, why):
    with pytest.raises(MalformedRequest, match=why):
        CONFIG.changed(changes)


@pytest.mark.parametrize(
    "name", ["controllerStorePath", "controllerPort", "raftHeartbeatInterval", "configBlackList", "rocketmqHome"]
)
def test_what_takes_effect_only_at_a_start_is_refused_by_another_code(name):
    with pytest.raises(RemotingError, match="cannot be changed while the controller runs") as refused:
        CONFIG.changed({"notifyBrokerRoleChanged": "false", name: "1"})
    assert refused.value.code == ResponseCode.NO_PERMISSION


def test_every_setting_that_is_read_is_shown():
    class Asked(dict[str, object]):
        names: ClassVar[set[str]] = set()

        def get(self, name: str, default: object = None) -> object:
            self.names.add(name)
            return super().get(name, default)

    read_config(ControllerConfig, Asked({"controllerDLegerPeers": PEERS, "controllerDLegerSelfId": "n0"}))
    assert set(CONFIG.public()) == Asked.names
