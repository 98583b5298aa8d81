"""Settings written as lines `name = value`."""

from __future__ import annotations

import pytest

from system_under_test.node.settings import read_config
from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.runtime.settings_file import settings_of

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
    assert settings_of(text) == {"a": False, "b": -7, "c": "04", "d": "x = y", "f": "", "g": 0}


@pytest.mark.parametrize("text", ["a = \\u12", "a = \\ud83d"])
def test_what_is_no_properties_is_told(text):
    with pytest.raises(ValueError, match=r"expected four hexadecimal digits|half a character"):
        settings_of(text)


def test_controllers_are_configured_as_in_rocketmqs_files_with_one_port_for_all_that_is_asked_of_them():
    config = read_config(ControllerConfig, settings_of(CONTROLLER))
    assert config.self_id == "n0"
    assert config.group == "group1"
    assert config.raft_port == 9877
    assert config.request_address("127.0.0.1:9878") == "127.0.0.1:9878"
    assert config.store_path == "home/admin/DledgerController"
    assert config.notify_broker_role_changed
    assert not config.enable_elect_unclean_master
