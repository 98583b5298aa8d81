"""A wrong setting is named, with what was expected and what came."""

from __future__ import annotations

import pytest

from system_under_test.node.settings import Settings, WatchedConfig
from system_under_test.rocketmq.nameserver.config import NameServerConfig


def test_settings_have_the_seeds_names_and_defaults():
    assert NameServerConfig.from_json({}) == NameServerConfig()
    config = NameServerConfig.from_json({"listenPort": 1, "scanNotActiveBrokerInterval": 250})
    assert (config.listen_port, config.scan_interval_s, config.broker_expiry_s) == (1, 0.25, 120.0)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"listenPort": "9876"}, "listenPort: expected a whole number from 0 on, got '9876'"),
        ({"listenPort": True}, "listenPort: expected a whole number from 0 on, got True"),
        ({"listenPort": 65536}, "listenPort: expected a port from 0 to 65535, got 65536"),
        ({"brokerChannelExpiredTime": 0}, "brokerChannelExpiredTime: expected a whole number from 1 on, got 0"),
    ],
)
def test_a_wrong_setting_is_named(config, words):
    with pytest.raises(ValueError, match=words):
        NameServerConfig.from_json(config)


def test_text_and_flags_are_checked():
    settings = Settings({"a": "", "b": 1})
    with pytest.raises(ValueError, match="a: expected text, got ''"):
        settings.text("a")
    with pytest.raises(ValueError, match="missing: expected text, got None"):
        settings.text("missing")
    with pytest.raises(ValueError, match="b: expected true or false, got 1"):
        settings.flag("b", False)


def test_a_setting_that_no_program_reads_is_refused_with_the_likely_one_named():
    config = WatchedConfig({"listenPort": 1, "scanNotActiveBrokerIntervall": 5})
    NameServerConfig.from_json(config)
    with pytest.raises(ValueError, match=r"Intervall: there is no such setting; did you mean scanNotActiveBroker"):
        config.refuse_unknown()


def test_settings_that_were_asked_for_are_accepted():
    config = WatchedConfig({"listenPort": 1})
    NameServerConfig.from_json(config)
    config.refuse_unknown()
