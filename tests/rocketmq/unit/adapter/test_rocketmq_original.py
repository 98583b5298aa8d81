"""What the programs of Apache RocketMQ are given: settings that it documents, in the form that each program reads."""

from __future__ import annotations

import json

import pytest

from harness.errors import UsageError
from harness.program import Command, JavaRelease
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.settings import RocketmqSettings


def commands(settings: RocketmqSettings) -> dict[str, Command]:
    found = {}
    for node in SYSTEM.nodes(settings, None):
        assert isinstance(node.program, Command)
        found[node.name] = node.program
    return found


def lines(command: Command) -> dict[str, str]:
    (text,) = (text for path, text in command.files.items() if path.endswith(".conf"))
    return dict(line.split("=", 1) for line in text.splitlines())


def test_proxies_take_json_by_an_option_of_their_own() -> None:
    proxy = commands(RocketmqSettings(release="5.4.0", client="grpc"))["p1"]
    ((path, text),) = ((path, text) for path, text in proxy.files.items() if path.endswith("proxy.conf"))
    assert proxy.argv[-1].endswith(f'/bin/mqproxy" -pc {path}')
    settings = json.loads(text)
    assert settings["proxyMode"] == "CLUSTER"
    assert settings["namesrvAddr"] == "c1:9876;c2:9876;c3:9876"
    assert settings["grpcClientProducerMaxAttempts"] == 1
    assert settings["topicRouteServiceCacheRefreshSeconds"] == 6
    assert settings["useEndpointPortFromRequest"] is True


def test_where_ports_are_others_than_a_proxys_own_releases_that_know_only_that_are_refused() -> None:
    def require(release: str, environment: str) -> None:
        SYSTEM.require_clients(RocketmqSettings(release=release, client="grpc"), environment)

    for fine in (("5.1.0", "ssh"), ("5.2.0", "docker"), ("5.4.0", "docker")):
        require(*fine)
    with pytest.raises(UsageError, match=r"choose 5\.2\.0 or a later"):
        require("5.1.0", "docker")


def test_proxies_find_the_file_of_accounts_without_which_older_ones_do_not_start() -> None:
    image = commands(RocketmqSettings(release="5.2.0", client="grpc"))["p1"].image
    assert isinstance(image, JavaRelease)
    assert "conf/plain_acl.yml" in dict(image.files)


def test_brokers_get_timers_locks_and_the_time_that_a_lock_lasts() -> None:
    broker = commands(RocketmqSettings(release="5.4.0", strict_locks=True, java_options="-Dmine=1"))["b1"]
    settings = lines(broker)
    assert settings["timerPrecisionMs"] == "100"
    assert settings["lockInStrictMode"] == "true"
    assert "lockMaxLiveTime=18000 -Dmine=1" in broker.environment["JAVA_OPT_EXT"]


@pytest.mark.parametrize(("deployment", "replicas"), [("dual-write", "2"), ("async-slaves", None), ("masters", None)])
def test_a_dual_write_waits_for_a_slave(deployment: str, replicas: str | None) -> None:
    settings = RocketmqSettings(release="5.4.0", deployment=deployment)  # type: ignore[arg-type]
    assert lines(commands(settings)["b1"]).get("inSyncReplicas") == replicas
