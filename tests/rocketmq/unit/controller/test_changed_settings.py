"""Settings changed while a controller ran: kept over restarts, unless its configuration says something new."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from system_under_test.node.settings import read_config
from system_under_test.rocketmq.controller.changed_settings import ChangedSettings
from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.rocketmq.controller.protocol import MalformedRequest
from system_under_test.runtime.real_disk import RealDisk
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import framed

CONFIGURED = read_config(
    ControllerConfig, {"controllerDLegerPeers": "n0-a:1", "controllerDLegerSelfId": "n0", "controllerPort": 9878}
)


def started(root: Path, configured: ControllerConfig = CONFIGURED) -> ChangedSettings:
    settings = ChangedSettings(RealDisk(root), configured)
    settings.load()
    return settings


def test_changes_outlive_the_process_and_the_later_one_of_a_setting_holds(tmp_path):
    settings = started(tmp_path)
    asyncio.run(settings.update({"enableElectUncleanMaster": "true", "brokerHeartbeatTimeout": "700"}))
    asyncio.run(settings.update({"brokerHeartbeatTimeout": "900"}))
    assert started(tmp_path).config == replace(CONFIGURED, enable_elect_unclean_master=True, broker_timeout_s=0.9)


def test_a_configuration_that_was_edited_since_wins_over_the_change(tmp_path):
    settings = started(tmp_path)
    asyncio.run(settings.update({"brokerHeartbeatTimeout": "700", "electMasterMaxRetryCount": "9"}))
    edited = replace(CONFIGURED, broker_timeout_s=3.0)
    assert started(tmp_path, edited).config == replace(edited, election_tries=9)
    assert started(tmp_path).config.broker_timeout_s == 0.7, "nothing was changed since, so nothing is forgotten"


def test_a_setting_that_is_changed_back_follows_its_configuration_again(tmp_path):
    settings = started(tmp_path)
    asyncio.run(settings.update({"brokerHeartbeatTimeout": "700"}))
    asyncio.run(settings.update({"brokerHeartbeatTimeout": "10000"}))
    edited = replace(CONFIGURED, broker_timeout_s=3.0)
    assert started(tmp_path, edited).config == edited


def test_what_is_refused_changes_nothing(tmp_path):
    settings = started(tmp_path)
    with pytest.raises(MalformedRequest):
        asyncio.run(settings.update({"enableElectUncleanMaster": "true", "brokerHeartbeatTimeout": "0"}))
    assert started(tmp_path).config == settings.config == CONFIGURED


@pytest.mark.parametrize("record", [b"[]", b"{", b'{"controllerPort":["9878","1"]}', b'{"brokerHeartbeatTimeout":"x"}'])
def test_a_file_that_no_controller_wrote_is_never_believed(tmp_path, record):
    file = RealDisk(tmp_path).open(f"{CONFIGURED.store_path}/changed-settings")
    file.append(framed(record))
    with pytest.raises(StorageCorrupt, match="changed settings"):
        started(tmp_path)
