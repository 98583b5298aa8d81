"""Settings written as lines `name = value`."""

from __future__ import annotations

import pytest

from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.runtime.properties import properties

CONTROLLER = """
# a controller in a NameServer
enableControllerInNamesrv = true
controllerDLegerGroup = group1
controllerDLegerPeers = n0-127.0.0.1:9877;n1-127.0.0.1:9878;n2-127.0.0.1:9879
controllerDLegerSelfId = n0
controllerStorePath = /home/admin/DledgerController
enableElectUncleanMaster = false
notifyBrokerRoleChanged = true
"""


def test_values_are_flags_numbers_or_text():
    text = "a = true\nb=-7\n c = 04\nd = x = y\n\n  # e = 1\na = false\nf =\ng = 0"
    assert properties(text) == {"a": False, "b": -7, "c": "04", "d": "x = y", "f": "", "g": 0}


@pytest.mark.parametrize("text", ["a", "= 1", "a = 1\n?"])
def test_a_line_that_is_none_is_told(text):
    with pytest.raises(ValueError, match=r"line \d: expected `name = value`"):
        properties(text)


def test_controllers_are_configured_as_in_rocketmqs_files_with_one_port_for_all_that_is_asked_of_them():
    config = ControllerConfig.from_json(properties(CONTROLLER))
    assert config.self_id == "n0"
    assert config.group == "group1"
    assert config.raft_port == 9877
    assert config.request_address("n1") == "127.0.0.1:9878"
    assert config.store_path == "home/admin/DledgerController"
    assert config.notify_broker_role_changed
    assert not config.enable_elect_unclean_master
