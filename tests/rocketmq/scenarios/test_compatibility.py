"""Brokers and NameServers of different versions together: every pairing, booted, and its master killed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from harness.system import NodeSpec
from tests.rocketmq.scenarios.broker_cluster import GROUP, TOPIC
from tests.rocketmq.scenarios.deployed_cluster import Deployed, node, play

NAME_SERVERS, CONTROLLERS = ("m0", "m1", "m2"), ("k0", "k1", "k2")
OLD = {"behavesAsVersion": 4}

RUNS, SWITCHES, OFFLINE = "runs, cannot switch", "runs, can switch", "cannot come online"
TABLE = f"""
                     old NameServer        old + controllers    new with controllers  new without
old broker           {RUNS}   {RUNS}  {RUNS}   {RUNS}
new, controller mode {OFFLINE}    {SWITCHES}     {SWITCHES}      {OFFLINE}
new, without         {RUNS}   {RUNS}  {RUNS}   {RUNS}
"""
SITES = ("old NameServer", "old + controllers", "new with controllers", "new without")
CELLS: Mapping[tuple[str, str], str] = {
    **{("old broker", site): RUNS for site in SITES},
    **{("new, without", site): RUNS for site in SITES},
    ("new, controller mode", "old NameServer"): OFFLINE,
    ("new, controller mode", "old + controllers"): SWITCHES,
    ("new, controller mode", "new with controllers"): SWITCHES,
    ("new, controller mode", "new without"): OFFLINE,
}


def name_servers(site: str) -> list[NodeSpec]:
    """With the controllers that the site has, in NameServers or apart."""
    if site == "new with controllers":
        peers = ";".join(f"{name}-{name}:9878" for name in NAME_SERVERS)
        controller = {"enableControllerInNamesrv": True, "controllerDLegerPeers": peers}
        return [node(name, "nameserver", {**controller, "controllerDLegerSelfId": name}) for name in NAME_SERVERS]
    nodes = [node(name, "nameserver", OLD if site.startswith("old") else {}) for name in NAME_SERVERS]
    if site == "old + controllers":
        peers = ";".join(f"{name}-{name}:9878" for name in CONTROLLERS)
        nodes += [
            node(name, "controller", {"controllerDLegerPeers": peers, "controllerDLegerSelfId": name})
            for name in CONTROLLERS
        ]
    return nodes


def brokers(kind: str, site: str) -> list[NodeSpec]:
    config: dict[str, object] = {
        "brokerName": GROUP,
        "namesrvAddr": ";".join(f"{name}:9876" for name in NAME_SERVERS),
        "topics": {TOPIC: 1},
        "slaveReadEnable": True,
    }
    if kind == "new, controller mode":
        where = CONTROLLERS if site == "old + controllers" else NAME_SERVERS
        config |= {"enableControllerMode": True, "controllerAddr": ";".join(f"{name}:9878" for name in where)}
        return [node(name, "broker", config) for name in ("b1", "b2")]
    if kind == "old broker":
        config |= OLD
    slave = {"brokerRole": "SLAVE", "brokerId": 1}
    return [node("b1", "broker", config), node("b2", "broker", {**config, **slave})]


@pytest.mark.parametrize(("kind", "site"), CELLS)
def test_each_pairing_runs_and_switches_exactly_where_mode_and_controllers_are_both_there(kind: str, site: str) -> None:
    found: list[str] = []

    async def story(cluster: Deployed) -> None:
        if not await cluster.is_published("a", 30):
            assert cluster.reported("b1", "cannot_come_online")
            assert cluster.reported("b2", "cannot_come_online")
            found.append(OFFLINE)
            return
        await cluster.sleep(15)
        master = await cluster.publish("b")
        other = "b2" if master == "b1" else "b1"
        await cluster.until_letters(other, "a", "b")
        await cluster.kill(master)
        switched = await cluster.is_published("c", 40)
        assert await cluster.read(other) == (["a", "b", "c"] if switched else ["a", "b"])
        await cluster.boot(master)
        await cluster.publish("d")
        await cluster.until_equal("b1", "b2")
        found.append(SWITCHES if switched else RUNS)

    play(story, *name_servers(site), *brokers(kind, site))
    assert found == [CELLS[kind, site]]


def test_the_table_above_is_the_one_that_is_tested() -> None:
    lines = [line for line in TABLE.splitlines() if line.strip()][1:]
    for line, kind in zip(lines, ("old broker", "new, controller mode", "new, without"), strict=True):
        assert line.startswith(kind)
        expected = [CELLS[kind, site] for site in SITES]
        assert [cell.strip() for cell in line.removeprefix(kind).split("  ") if cell.strip()] == expected


def test_an_old_slave_follows_a_new_master_and_a_new_slave_an_old_one() -> None:
    async def story(cluster: Deployed) -> None:
        assert await cluster.publish("a") == "b1"
        await cluster.until_equal("b1", "b2")

    for old in (0, 1):
        pair = brokers("new, without", "new without")
        pair[old] = brokers("old broker", "new without")[old]
        play(story, *name_servers("new without"), *pair)


def test_of_two_masters_an_old_name_server_leads_to_the_one_that_registered_last() -> None:
    async def story(cluster: Deployed) -> None:
        await cluster.publish("a")
        await cluster.sleep(2)
        route = await cluster.route(TOPIC, "m0")
        assert route is not None
        before = route.master
        await cluster.kill("b1" if before == "b1:10911" else "b2")
        await cluster.sleep(2)
        route = await cluster.route(TOPIC, "m0")
        assert route is None or route.master != before

    pair = [node(name, "broker", {**brokers("old broker", "")[0].program.config}) for name in ("b1", "b2")]
    play(story, *name_servers("old NameServer"), *pair)
