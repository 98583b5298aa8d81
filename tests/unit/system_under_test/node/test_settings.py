"""A wrong setting is named, with what was expected and what came."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pytest

from system_under_test.node.settings import (
    Settings,
    WatchedConfig,
    choice,
    fields_by_setting,
    integer,
    nested,
    read_config,
    setting,
)
from system_under_test.rocketmq.nameserver.config import NameServerConfig


def test_settings_have_the_seeds_names_and_defaults():
    assert read_config(NameServerConfig, {}) == NameServerConfig()
    config = read_config(NameServerConfig, {"listenPort": 1, "scanNotActiveBrokerInterval": 250})
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
        read_config(NameServerConfig, config)


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
    read_config(NameServerConfig, config)
    with pytest.raises(ValueError, match=r"Intervall: there is no such setting; did you mean scanNotActiveBroker"):
        config.refuse_unknown()


def test_settings_that_were_asked_for_are_accepted():
    config = WatchedConfig({"listenPort": 1})
    read_config(NameServerConfig, config)
    config.refuse_unknown()


class Pace(Enum):
    SLOW = "slow"
    FAST = "fast"


@setting
def _twice(settings: Settings, name: str, default: int) -> int:
    return 2 * settings.integer(name, default)


@dataclass(frozen=True, kw_only=True)
class Engine:
    pace: Pace = choice("enginePace", Pace.FAST)


@dataclass(frozen=True, kw_only=True)
class Car:
    wheels: int = integer("wheels", 4, minimum=1)
    pedals: int = _twice("pedalPairs", 1)
    engine: Engine = nested(Engine)


def test_a_dataclass_is_read_by_the_declarations_of_its_fields():
    assert read_config(Car, {}) == Car() == Car(wheels=4, pedals=2, engine=Engine(pace=Pace.FAST))
    read = read_config(Car, {"wheels": 3, "pedalPairs": 5, "enginePace": "slow"})
    assert read == Car(wheels=3, pedals=10, engine=Engine(pace=Pace.SLOW))
    assert fields_by_setting(Car) == {"wheels": "wheels", "pedalPairs": "pedals"}


def test_a_wrong_setting_of_a_nested_dataclass_is_named():
    with pytest.raises(ValueError, match="enginePace: expected slow or fast, got 'warp'"):
        read_config(Car, {"enginePace": "warp"})
