"""Storms are drawn from their seed and number alone, and can be changed without becoming what cannot be run."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from harness.errors import UsageError
from harness.record.scenario import NEAR, Scenario, SettingValue
from harness.seed import Seed
from nemesis.impair import Impairing, amounts_of
from nemesis.target import Role
from nemesis.trigger import Trigger
from stormproof.search.mutate import CHANGES, entries_in, mutated, reset, with_changed_amount, without_idle
from stormproof.search.points import NOTHING_KNOWN, Points, strike
from stormproof.search.sampling import BESIDE, drawn_storm, faults_for, overtaken
from stormproof.search.space import BUSY, CROWDS, UNHURRIED, Faults, Space
from stormproof.session import registry
from workloads.systems.rocketmq.settings import broker_groups

pytestmark = pytest.mark.xdist_group("drawn storms")  # each worker would draw all of them
SPACE = Space(system="rocketmq", settings={})


@cache
def storm(number: int) -> Scenario:
    return drawn_storm(SPACE, 7, number)


def storms(count: int) -> list[Scenario]:
    return [storm(number) for number in range(count)]


def test_storms_are_made_of_the_packages_that_are_named_and_of_no_other() -> None:
    space = replace(SPACE, nemesis=("kill", "links"))
    drawn = [drawn_storm(space, 1, number) for number in range(20)]
    of = [mutated(drawn[n], drawn[n - 1], space, NOTHING_KNOWN, random.Random(n)) for n in range(20)]
    assert {entry.package for storm in (*drawn, *of) for entry in entries_in(storm)} == {"kill", "links"}


def test_in_some_storms_administrators_act_and_nodes_leave_beside_all_else() -> None:
    drawn = storms(200)
    asking = [[entry for entry in entries_in(storm) if entry.package in BESIDE] for storm in drawn]
    assert 15 < len([entries for entries in asking if entries]) < 50
    assert {entry.package for entries in asking for entry in entries} == set(BESIDE)
    assert {len(entries) for entries in asking} == {0, 1, 2, 3}
    assert all(entry.trigger is None for entries in asking for entry in entries)
    acts = {str(entry.shape) for entries in asking for entry in entries if entry.package == "administration"}
    assert len(acts) == 4
    only = [drawn_storm(replace(SPACE, nemesis=("kill", "administration")), 1, number) for number in range(60)]
    assert {entry.package for storm in only for entry in entries_in(storm)} == {"kill", "administration"}
    others = [drawn_storm(replace(SPACE, system="redis", environment="docker"), 7, number) for number in range(60)]
    assert not {entry.package for storm in others for entry in entries_in(storm)}.intersection(BESIDE)


def test_few_storms_have_settings_that_are_drawn_seldom_and_nodes_that_become_something_else_do() -> None:
    drawn = storms(400)
    for name in ("batch_push", "becomes_learner", "begins_as_version"):
        with_it = [scenario for scenario in drawn if name in scenario.settings]
        assert 0 < len(with_it) < len(drawn) / 12
        upgraded = [any(entry.package == "upgrades" for entry in entries_in(scenario)) for scenario in with_it]
        assert all(upgraded) if name != "batch_push" else not any(upgraded)
    given = replace(SPACE, settings={"becomes_learner": True}, nemesis=("kill",))
    packages = {entry.package for n in range(20) for entry in entries_in(drawn_storm(given, 7, n))}
    assert packages == {"kill"}, "nobody named upgrades"


def test_few_storms_have_a_crowd_of_clients() -> None:
    crowds = [scenario for scenario in storms(400) if scenario.concurrency in CROWDS]
    assert 2 < len(crowds) < 20
    live = replace(SPACE, environment="docker")
    assert not any(drawn_storm(live, 7, number).concurrency in CROWDS for number in range(100))


def test_what_is_late_by_the_clock_is_asked_at_the_systems_own_pace_only_where_links_are_near() -> None:
    at_own_pace = [scenario for scenario in storms(400) if is_at_own_pace(scenario)]
    timed = {registry.workload(scenario.workload).timed: set() for scenario in at_own_pace}
    for scenario in at_own_pace:
        timed[registry.workload(scenario.workload).timed].add(scenario.world)
    assert timed == {True: {"near"}, False: {"near", "drawn"}}


def test_a_storm_follows_from_the_root_seed_and_its_number() -> None:
    assert [drawn_storm(SPACE, 7, number) for number in range(5)] == storms(5)
    assert drawn_storm(SPACE, 8, 0) != drawn_storm(SPACE, 7, 0)
    assert len(set(map(str, storms(5)))) == 5


def test_every_drawn_storm_can_be_run_and_strikes_within_itself() -> None:
    for scenario in storms(60):
        registry.environment_of(scenario, registry.resolve(scenario))
        storm_ns = round((scenario.time_limit_s - scenario.liveness_s) * 1e9)
        assert scenario.schedule
        assert all(0 <= entry.at_ns < entry.until_ns <= storm_ns for entry in entries_in(scenario))
        assert len(entries_in(scenario)) == len(scenario.schedule)


def test_some_fault_of_every_storm_waits_for_nothing() -> None:
    for scenario in storms(60):
        assert any(entry.trigger is None for entry in entries_in(scenario))
    parents = storms(12)
    for number, parent in enumerate(parents):
        child = mutated(parent, parents[number - 1], SPACE, NOTHING_KNOWN, Seed(number).stream())
        assert any(entry.trigger is None for entry in entries_in(child))


def test_a_fault_waits_for_what_was_reached_the_rarer_the_likelier() -> None:
    known = Points(seconds={"common": (9, 9, 9), "rare": (0, 0, 2), "early": (5,)}, storms={"common": 50, "rare": 1})
    drawn = [known.trigger(("common", "early", "never", "rare"), "kill", 1.5, Seed(n).stream()) for n in range(300)]
    count = Counter(trigger.point for trigger in drawn)
    assert count["rare"] > 3 * count["common"] > 0
    assert count["never"] and count["never"] + count["early"] < 0.2 * len(drawn)
    assert all(known.comes(trigger, 1.5) for trigger in drawn if trigger.point == "common")
    assert any(trigger.nth > 1 for trigger in drawn if trigger.point == "rare")
    assert not known.comes(Trigger("early"), 1.5) and known.comes(Trigger("early", 5), 0.0)


def test_a_fault_waits_for_points_at_which_its_kind_struck_seldom() -> None:
    known = Points(seconds={"here": (1,), "there": (1,)}, strikes={strike("kill", "here"): 9})
    for package, share in (("kill", 0.3), ("power", 0.7)):
        drawn = [known.trigger(("here", "there"), package, 0.0, Seed(n).stream()).point for n in range(300)]
        assert (drawn.count("here") / len(drawn) > 0.3) is (share > 0.3)


def test_a_fault_that_waited_in_vain_is_seldom_kept() -> None:
    parent = replace(
        storms(1)[0],
        workload="log",
        settings={},
        schedule=("1 for 1 kill b1 when log-cut [kill 0]", "2 for 1 kill b2 when put-appended [kill 1]"),
    )
    known = Points(seconds={"put-appended": (5,) * 20})
    kept = [without_idle(parent, SPACE, known, Seed(n).stream()) for n in range(60)]
    assert all("kill b2 when put-appended" in " ".join(scenario.schedule) for scenario in kept)
    assert 0 < sum("log-cut" in " ".join(scenario.schedule) for scenario in kept) < 30
    assert entries_in(without_idle(parent, SPACE, NOTHING_KNOWN, Seed(0).stream())) == entries_in(parent)


def test_the_schedule_says_how_badly_each_impairment_strikes() -> None:
    shapes = [entry.shape for scenario in storms(60) for entry in entries_in(scenario)]
    impairing = [shape for shape in shapes if isinstance(shape, Impairing) and amounts_of(shape)]
    assert len(impairing) > 20
    assert all(shape.amounts is not None for shape in impairing)
    other = [with_changed_amount(shape, Seed(n).stream()) for n, shape in enumerate(impairing)]
    assert sum(a != b for a, b in zip(impairing, other, strict=True)) > len(impairing) / 2
    for shape in other:
        assert isinstance(shape, Impairing) and shape.amounts is not None
        assert all(a.reads(a.text(value)) for a, value in zip(amounts_of(shape), shape.amounts, strict=True))


def test_no_shape_is_drawn_that_fits_no_node() -> None:
    alone, three = (faults_for(with_controllers(count), SPACE) for count in (1, 3))
    assert shapes(three) - shapes(alone) >= {"bridge in controllers"}
    assert shapes(alone) >= {"kill active-controller", "isolate primary", "power off one of brokers"}
    active, draw = Role("active-controller"), Seed(1).stream()
    assert "isolate active-controller with one of controllers" not in {
        str(alone.aimed(active, draw)[1]) for _ in range(300)
    }


def test_writes_are_misdirected_only_in_storms_of_systems_that_would_notice() -> None:
    ledgers = Space(system="bookkeeper", settings={})
    served = {workload: Scenario(system="bookkeeper", workload=workload) for workload in ("log", "register")}
    packages = {workload: faults_for(scenario, ledgers).packages for workload, scenario in served.items()}
    assert {str(shape) for _, shape in packages["log"]["misdirected-writes"]} == {
        "misdirect writes of auditor",
        "misdirect writes of one of bookies",
    }
    assert "misdirected-writes" not in packages["register"].keys() | faults_for(storm(0), SPACE).packages.keys()


def test_what_a_system_advises_of_a_workload_leaves_its_storms_as_varied_as_any() -> None:
    space, draw = Space(system="cmq", workload="pop", settings={}), Seed(1).stream()
    assert space.is_possible("pop", {}) and not space.is_possible("pop", {"changed_share": 0.6})
    drawn = [space.drawn_settings("pop", NEAR, draw) for _ in range(30)]
    assert {settings.get("nodes") for settings in drawn} == {None, 5}
    assert {name for settings in drawn for name in settings} >= {"groups", "file_bytes", "queues"}
    assert {settings.get("changed_share", 0.0) for settings in drawn} == {0.0}


def shapes(faults: Faults) -> set[str]:
    return {str(shape) for of_package in faults.packages.values() for _, shape in of_package}


def with_controllers(count: int) -> Scenario:
    return Scenario(system="rocketmq", workload="log", settings={"controllers": count})


def test_what_is_given_is_not_drawn() -> None:
    space = Space(system="rocketmq", workload="register", mutant="local-read", settings={"brokers": 4})
    for number in range(30):
        scenario = drawn_storm(space, 1, number)
        assert (scenario.workload, scenario.mutant, scenario.settings["brokers"]) == ("register", "local-read", 4)


def test_no_queues_are_drawn_that_a_given_topic_has_not() -> None:
    space = Space(system="rocketmq", workload="log", settings={"topic_queues": 4})
    drawn = [drawn_storm(space, 7, number) for number in range(100)]
    parts = [registry.resolve(scenario) for scenario in drawn]
    queues = {(each.workload_settings.queues, len(broker_groups(each.system_settings))) for each in parts}
    assert {used for used, _ in queues} == {1, 2, 4, 8}
    assert all(used <= 4 * groups for used, groups in queues)
    with pytest.raises(UsageError, match="the workload uses 4 queues of a topic that has 3; set queues to at most 3"):
        replace(space, settings={"topic_queues": 3}).require_possible()


def test_storms_are_drawn_of_every_deployment_and_workload_most_of_the_usual_one() -> None:
    drawn = storms(250)
    of = Counter(scenario.settings.get("deployment", "controller") for scenario in drawn)
    assert of.keys() == {"controller", "single", "masters", "async-slaves", "dual-write", "dledger"}
    assert of["controller"] > len(drawn) / 2
    system = registry.system("rocketmq")
    assert {scenario.workload for scenario in drawn} == set(system.workloads)
    assert {scenario.settings.get("groups", 1) for scenario in drawn} >= {1, 2}
    assert any("controllers_alone" in scenario.settings for scenario in drawn)
    assert {scenario.workload for scenario in drawn if scenario.settings.get("client") == "grpc"} == {"pop"}


def test_settings_that_go_together_are_drawn_together() -> None:
    drawn = [drawn_storm(replace(SPACE, workload="log"), 7, number).settings for number in range(80)]
    alone = [settings for settings in drawn if settings.get("brokers") == 1]
    assert alone and all(settings["min_in_sync_replicas"] == 1 for settings in alone)
    assert any(settings.get("read_uncommitted") for settings in drawn)
    assert any(settings.get("sync_from_last_file") and settings.get("retention_s") for settings in drawn)


@pytest.mark.parametrize(
    ("settings", "workload"),
    [({"deployment": "dual-write"}, None), ({"client": "grpc", "groups": 2}, None), ({"brokers": 4}, "pop")],
)
def test_no_deployment_is_drawn_that_contradicts_what_is_given(
    settings: dict[str, SettingValue], workload: str | None
) -> None:
    space = Space(system="rocketmq", workload=workload, settings=settings)
    space.require_possible()
    drawn = [drawn_storm(space, 2, number) for number in range(45)]
    for number, scenario in enumerate(drawn):
        changed = mutated(scenario, drawn[number - 1], space, NOTHING_KNOWN, Seed(number).stream())
        for storm in (scenario, changed):
            registry.environment_of(storm, registry.resolve(storm))
            assert settings.items() <= storm.settings.items()
    assert (len({scenario.settings.get("deployment") for scenario in drawn}) > 1) is ("deployment" not in settings)


def test_a_changed_setting_leaves_the_deployment_as_it_was() -> None:
    for number, parent in enumerate(storms(60)):
        changed = reset(parent, parent, SPACE, NOTHING_KNOWN, Seed(number).stream())
        names = ("deployment", "client", "controllers_alone")
        assert [changed.settings.get(name) for name in names] == [parent.settings.get(name) for name in names]
        assert SPACE.deployment_of(parent).items() <= parent.settings.items()


def test_storms_differ_in_kind_length_load_and_settings() -> None:
    drawn = storms(80)
    assert len({scenario.rate for scenario in drawn}) > 2
    assert len({scenario.workload for scenario in drawn}) > 4
    assert len({tuple(sorted(scenario.settings.items())) for scenario in drawn}) > 10
    packages = {entry.package for scenario in drawn for entry in entries_in(scenario)}
    assert {"partition", "kill", "pause", "clock", "power"} <= packages
    lengths_s = sorted((e.until_ns - e.at_ns) / 1e9 for scenario in drawn for e in entries_in(scenario))
    assert lengths_s[0] < 0.05 and lengths_s[-1] > 10


def test_some_storms_are_long_and_have_few_faults() -> None:
    drawn = storms(80)
    is_long = [scenario.time_limit_s - scenario.liveness_s > BUSY.longest_s for scenario in drawn]
    quiet = [one for one, long in zip(drawn, is_long, strict=True) if long and not is_at_own_pace(one)]
    assert 2 < len(quiet) < len(drawn) / 4
    faults_a_second = [len(scenario.schedule) / scenario.time_limit_s for scenario in quiet]
    assert max(faults_a_second) < 1 and min(faults_a_second) < 0.1


def is_at_own_pace(scenario: Scenario) -> bool:
    return scenario.settings.get("time_scale") == 1.0


def test_a_fifth_of_the_storms_have_the_systems_own_pace_and_last_long_enough_for_it() -> None:
    drawn = storms(80)
    unhurried = [scenario for scenario in drawn if is_at_own_pace(scenario)]
    assert len(drawn) / 10 < len(unhurried) < len(drawn) / 3
    assert all(scenario.time_limit_s - scenario.liveness_s >= UNHURRIED.shortest_s for scenario in unhurried)
    given = replace(SPACE, settings={"time_scale": 0.2})
    assert not any(is_at_own_pace(drawn_storm(given, 7, number)) for number in range(20))


def test_nodes_end_together_and_some_are_back_before_anybody_misses_them() -> None:
    entries = [entries_in(scenario) for scenario in storms(80)]
    together = [
        one
        for of in entries
        for one in of
        for other in of
        if one.number < other.number and one.at_ns == other.at_ns and one.package == other.package == "power"
    ]
    brief = [one for of in entries for one in of if one.package == "power" and one.until_ns - one.at_ns < 5e8]
    assert len(together) > 1 and len(brief) > 1


def test_some_nodes_end_while_another_cannot_act() -> None:
    space = replace(SPACE, nemesis=("kill", "pause", "power"))
    faults = faults_for(storm(0), space)
    for number in range(50):
        absence, *ends = overtaken(faults, 30.0, 3, random.Random(number))
        assert absence.package == "pause" and absence.number == 3
        assert ends and {entry.package for entry in ends} <= {"kill", "power"}
        assert all(absence.at_ns <= entry.at_ns <= absence.until_ns for entry in ends)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_changed_storm_can_be_run_and_often_differs(change: object) -> None:
    assert callable(change)
    parents = storms(12)
    differing = 0
    for number, parent in enumerate(parents):
        changed = change(parent, parents[number - 1], SPACE, NOTHING_KNOWN, Seed(number).stream())
        registry.environment_of(changed, registry.resolve(changed))
        differing += changed != parent
    assert differing >= 4


def test_changes_follow_from_their_seed() -> None:
    parent, other = storms(2)
    first, second = (mutated(parent, other, SPACE, NOTHING_KNOWN, Seed(3).stream()) for _ in range(2))
    assert first == second


def test_splicing_keeps_each_random_stream_once() -> None:
    parents = storms(20)
    for number, parent in enumerate(parents):
        child = mutated(parent, parents[number - 1], SPACE, NOTHING_KNOWN, Seed(number).stream())
        streams = [(entry.package, entry.number) for entry in entries_in(child)]
        assert len(streams) == len(set(streams))


def test_faults_are_aimed_at_those_who_serve_the_workload() -> None:
    served_by_controllers = replace(SPACE, workload="register")
    struck = set()
    for number in range(40):
        storm = drawn_storm(served_by_controllers, 3, number)
        faults = faults_for(storm, served_by_controllers)
        targets = {str(target) for target in faults.targets}
        assert not any("broker" in target or target.startswith("b") or target == "primary" for target in targets)
        struck.update(line for line in storm.schedule if " primary" in line or " b1" in line or " brokers" in line)
    assert struck == set()
    everybody = faults_for(with_controllers(3), SPACE)
    assert {"primary", "brokers", "controllers"} <= {str(target) for target in everybody.targets}


def test_storms_of_several_workloads_have_clients_for_each():
    space = Space(system="cmq", workload="queue+pop", settings={})
    storms = [drawn_storm(space, 7, number) for number in range(40)]
    assert {storm.concurrency for storm in storms} & {4}, "two would have been too few"
    for storm in storms:
        registry.resolve(storm)
