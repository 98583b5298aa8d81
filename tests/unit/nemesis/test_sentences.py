"""A sentence is kept or refused, and what is wrong with one is named by its part, with the nearest that is right."""

from __future__ import annotations

import dataclasses

import pytest

from harness.errors import UsageError
from harness.record.scenario import Scenario
from harness.seed import Seed
from nemesis import sentence as grammar
from nemesis.periodic import MOST_STRIKES, Beat, NoSettings, every
from nemesis.shape import Isolate
from nemesis.target import Nodes
from stormproof.scenarios import PRIMARY, log, rocketmq, storm
from stormproof.session import registry
from tests.unit.nemesis.systems import WORDS


def parse(sentence: str) -> Beat:
    return grammar.parse(sentence, WORDS)


def refusal(sentence: str) -> str:
    with pytest.raises(UsageError) as refused:
        parse(sentence)
    return str(refused.value)


def lengths(beat: Beat, storm_s: float) -> list[float]:
    return [(entry.until_ns - entry.at_ns) / 1e9 for entry in beat.schedule(Seed(3), NoSettings(), storm_s)]


def test_a_beat_is_written_as_a_sentence() -> None:
    parsed = parse("isolate primary every 10 for 5")
    assert parsed == every(10, Isolate(PRIMARY), heal_after_s=5)
    assert len(parsed.schedule(Seed(0), NoSettings(), 35)) == 3


def test_a_shape_goes_into_a_storm_as_a_value_and_comes_out_of_its_text_as_an_equal_one() -> None:
    beat = every(10, Isolate(Nodes(("b1",))), heal_after_s=5)
    scenario = storm(system=rocketmq(), workload=log(), nemesis=[beat, "kill"])
    assert scenario.nemesis == ("isolate b1 every 10 for 5", "kill")
    assert registry.resolve(scenario).packages[0] == beat


def test_a_node_that_the_settings_do_not_make_is_refused() -> None:
    beat = every(10, Isolate(Nodes(("b5",))), heal_after_s=5)
    scenario = storm(system=rocketmq(brokers=5), workload=log(), nemesis=[beat])
    assert registry.resolve(scenario).packages == (beat,)
    with pytest.raises(UsageError, match="'b5' is no target that can follow 'isolate'"):
        registry.resolve(dataclasses.replace(scenario, settings={}))


@pytest.mark.parametrize("length_s", [0.05, 2, 5, 5.1, 8, 9, 9.99])
def test_every_fault_lasts_as_long_as_its_sentence_says_and_ends_with_its_interval(length_s: float) -> None:
    beat = parse(f"isolate primary every 10 for {length_s:g}")
    assert beat.is_kept()
    assert lengths(beat, 600) == pytest.approx([length_s] * 60)
    for entry in beat.schedule(Seed(3), NoSettings(), 600):
        assert entry.number * 10e9 <= entry.at_ns < entry.until_ns <= (entry.number + 1) * 10e9


def test_faults_of_up_to_half_an_interval_strike_when_they_always_did() -> None:
    beat = parse("isolate primary every 10 for 5")
    starts = [entry.at_ns for entry in beat.schedule(Seed(1729), NoSettings(), 50)]
    drawn = [Seed(1729).child(beat.name, str(number)).stream().random() for number in range(5)]
    assert starts == [round(10e9 * (number + share / 2)) for number, share in enumerate(drawn)]


def refused(sentence: str, *, time_limit_s: float = 60, liveness_s: float = 0) -> str:
    scenario = Scenario(
        system="rocketmq", workload="log", nemesis=(sentence,), time_limit_s=time_limit_s, liveness_s=liveness_s
    )
    with pytest.raises(UsageError) as error:
        registry.environment_of(scenario, registry.resolve(scenario))
    return str(error.value)


@pytest.mark.parametrize("sentence", ["isolate primary every 5 for 10", "isolate primary every 10 for 10"])
def test_a_fault_that_is_not_over_before_the_next_interval_is_refused_with_sentences_that_can_be_kept(
    sentence: str,
) -> None:
    line = refused(sentence)
    assert "a fault of 10 s is not over when the next interval begins" in line
    assert "it must be shorter than the interval" in line
    for near in line.split("'")[3::2]:
        assert parse(near).is_kept()
    with pytest.raises(UsageError, match="shorter than the interval"):
        every(5, Isolate(PRIMARY), heal_after_s=10)


def test_settings_of_the_pace_of_packages_are_refused_where_there_are_only_sentences() -> None:
    paced = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=("isolate primary every 10 for 5",),
        settings={"interval_s": 2.0},
    )
    with pytest.raises(UsageError, match="unknown setting 'interval_s'"):
        registry.resolve(paced)
    assert registry.resolve(dataclasses.replace(paced, nemesis=(*paced.nemesis, "kill")))


def test_a_beat_that_never_strikes_is_refused_with_the_bound() -> None:
    line = refused("isolate primary every 61 for 5")
    assert "would never strike: the storm lasts 60 s" in line
    assert "make it at most 60" in line
    assert "the storm lasts 45 s" in refused("isolate primary every 50 for 5", liveness_s=15)
    assert "every 100 for 90' would never strike" in refused("isolate primary every 100 for 90")


def test_a_beat_that_strikes_absurdly_often_is_refused_with_the_bound() -> None:
    line = refused("isolate primary every 0.000001 for 0.0000001")
    assert "would strike 60,000,000 times in a storm of 60 s, at most 10,000 are possible" in line
    assert line.endswith("make the interval at least 0.006")
    assert len(lengths(parse("isolate primary every 0.006 for 0.003"), 60)) == pytest.approx(MOST_STRIKES, abs=1)


@pytest.mark.parametrize(
    ("sentence", "wrong", "meant"),
    [
        ("isolte primary every 10 for 5", "the verb 'isolte' is unknown", "isolate primary every 10 for 5"),
        ("Isolate primary every 10 for 5", "the verb 'Isolate' is unknown", "isolate primary every 10 for 5"),
        ("isolate primery every 10 for 5", "'primery' is no target", "isolate primary every 10 for 5"),
        ("isolate every 10 for 5", "the target after 'isolate' is missing", "isolate primary every 10 for 5"),
        ("kill one of broker every 8 for 2", "'broker' is no group", "kill one of brokers every 8 for 2"),
        ("kill one brokers every 8 for 2", "'brokers' is no word", "kill one of brokers every 8 for 2"),
        ("isolate bb2 every 10 for 5", "'bb2' is no target that can follow 'isolate'", "isolate b2 every 10 for 5"),
        ("kill b1+bb2 every 9 for 5", "'bb2' in 'b1+bb2' is no node; there are: b1, b2", "kill b1+b2 every 9 for 5"),
        ("kill b1+b2+b1 every 9 for 5", "'b1+b2+b1' names a node twice", "kill b1+b2 every 9 for 5"),
        ("cut link b1 b2 every 9 for 5", "'b2' is no word that can follow", "cut link b1 to b2 every 9 for 5"),
        ("cut b1 to c1 every 9 for 5", "'b1' is no word that can follow 'cut'", "cut link b1 to c1 every 9 for 5"),
        (
            "cut link b1 to every 9 for 5",
            "the target after 'cut link b1 to' is missing",
            "cut link b1 to primary every 9 for 5",
        ),
        ("bridge in every 9 for 5", "the group after 'bridge in' is missing", "bridge in brokers every 9 for 5"),
        ("power primary every 3 for 1", "'primary' is no word", "power off primary every 3 for 1"),
        ("primery apart from brokers every 9 for 2", "target 'primery'", "primary apart from brokers every 9 for 2"),
        ("isolate primary evry 10 for 5", "'every' is misspelt as 'evry'", "isolate primary every 10 for 5"),
        ("isolate primary each 10 for 5", "expected 'every' before 10, got 'each'", "isolate primary every 10 for 5"),
        ("isolate primary 10 for 5", "the word 'every' is missing", "isolate primary every 10 for 5"),
        ("isolate primary", "it lacks 'every SECONDS for SECONDS'", "isolate primary every 10 for 5"),
        ("isolate primary every 10s for 5", "the interval after 'every' is a number", "isolate primary every 10 for 5"),
        ("isolate primary every -9 for 5", "greater than 0, got '-9'", "isolate primary every 9 for 5"),
        ("isolate primary every for 5", "the interval after 'every' is missing", "isolate primary every 10 for 5"),
        ("isolate primary every 10 fro 5", "expected 'for' after 'every 10'", "isolate primary every 10 for 5"),
        ("isolate primary every 10 5", "the word 'for' is missing before 5", "isolate primary every 10 for 5"),
        ("isolate primary every 8", "'for' and the fault's length are missing", "isolate primary every 8 for 4"),
        ("isolate primary every 10 for", "the length after 'for' is missing", "isolate primary every 10 for 5"),
        ("isolate primary every 10 for 5s", "the length after 'for' is a number", "isolate primary every 10 for 5"),
        ("isolate primary every 10 for 5 s", "nothing follows the length, got 's'", "isolate primary every 10 for 5"),
        (
            "isolate primary and kill al and restart all every 9 for 2",
            "shape 2 of 3: 'al' is no target that can follow 'kill'",
            "isolate primary and kill all and restart all every 9 for 2",
        ),
        ("kill all and every 9 for 2", "shape 2 of 2: no shape stands there", "kill all every 9 for 2"),
        ("kill all adn pause all every 9 for 2", "'and' is misspelt as 'adn'", "kill all and pause all every 9 for 2"),
        ("isolte primry evry 9s fr 2s", "'every' is misspelt", "isolate primary every 9 for 2"),
    ],
)
def test_the_wrong_part_of_a_sentence_is_named_with_the_nearest_that_is_right(
    sentence: str, wrong: str, meant: str
) -> None:
    line = refusal(sentence)
    assert wrong in line
    assert line.endswith(f"; did you mean '{meant}'?")
    assert parse(meant).is_kept()


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        ("isolate primary every ten for 5", "a number of seconds greater than 0, got 'ten'"),
        ("isolate primary every 0 for 5", "a number of seconds greater than 0, got '0'"),
        ("isolate primary every 1e999 for 5", "a number of seconds greater than 0, got '1e999'"),
        ("isolate primary every ٣ for 1", "a number of seconds greater than 0, got '٣'"),
        ("kill primary now every 10 for 5", "only 'and' or 'every' can follow 'kill primary', got 'now'"),
        ("isolate nobody every 10 for 5", "'nobody' is no target that can follow 'isolate'; there can be: primary, "),
        ("isolate b9 every 10 for 5", "'b9' is no target that can follow 'isolate'; there can be: primary, "),
        ("kill b1+b9 every 10 for 5", "'b9' in 'b1+b9' is no node; there are: b1, b2, b3, c1, c2, c3"),
        ("destroy all every 10 for 5", "the verb 'destroy' is unknown; known are: isolate, one way around, "),
        ("partition every 10 for 5", "'partition' is a package of faults, which has a pace of its own"),
        ("partition kill", "packages of faults are named with a comma between them: partition,kill"),
        ("every 10 for 5", "no shape stands there"),
        ("word " * 200, "it lacks 'every SECONDS for SECONDS'"),
    ],
)
def test_where_nothing_comes_near_the_wrong_part_is_named_and_what_can_stand_there(sentence: str, wrong: str) -> None:
    line = refusal(sentence)
    assert wrong in line
    assert "did you mean" not in line
    assert len(line) < 400
