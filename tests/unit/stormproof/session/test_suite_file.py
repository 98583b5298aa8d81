"""Suites: what a TOML file multiplies out to, and how it is refused."""

from __future__ import annotations

import re

import pytest

from checkers.api.verdict import Verdict
from harness.errors import UsageError
from stormproof.session import registry
from stormproof.session.expectation import Expectation
from stormproof.session.suite_file import load_suite, parse_suite, shipped

MATRIX = """
name = "mine"
[defaults]
system = "rocketmq"
time_limit_s = 30
[[matrix]]
workload = ["log", "register"]
nemesis = ["partition, kill", "none"]
settings = [{}, { flush = "async" }]
seeds = { from = 5, count = 3 }
"""


def test_a_matrix_is_multiplied_out_in_the_order_written() -> None:
    suite = parse_suite(MATRIX, "mine.toml")
    assert suite.name == "mine"
    assert len(suite.scenarios) == 2 * 2 * 2 * 3
    assert len({repr(scenario) for scenario in suite.scenarios}) == 24
    first, last = suite.scenarios[0], suite.scenarios[-1]
    assert (first.workload, first.nemesis, dict(first.settings), first.seed) == ("log", ("partition", "kill"), {}, 5)
    assert (last.workload, last.nemesis, dict(last.settings), last.seed) == ("register", (), {"flush": "async"}, 7)
    assert {scenario.time_limit_s for scenario in suite.scenarios} == {30.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name =", "suite.toml: not TOML"),
        ('nmae = "x"', "suite.toml: unknown key 'nmae' of the suite; did you mean name? Known are: name, defaults"),
        ('name = "x"', "suite.toml: a suite needs at least one"),
        ('[[matrix]]\nsystem = "rocketmq"', "suite.toml: matrix 1 lacks 'workload'"),
        (
            '[[matrix]]\nworklaod = "log"',
            "suite.toml: unknown key 'worklaod' of matrix 1; did you mean workload? ",
        ),
        ('[defaults]\nsystem = 3\nworkload = "log"', "matrix 1: system takes text or a list of texts, got 3"),
        ('[defaults]\nsystem = "r"\nworkload = "log"\nrate = "fast"', "matrix 1: rate takes a number, got 'fast'"),
        ('[defaults]\nsystem = "r"\nworkload = "log"\nconcurrency = 1.5', "concurrency takes a whole number, got 1.5"),
        ('[defaults]\nsystem = "r"\nworkload = "log"\nseeds = ["a"]', "seeds takes whole numbers from 0, got 'a'"),
        (
            '[defaults]\nsystem = "r"\nworkload = "log"\nseeds = { form = 1 }',
            "'form' of matrix 1: seeds; did you mean from? ",
        ),
        ('[defaults]\nsystem = "r"\nworkload = "log"\nsettings = "x"', "settings takes a table"),
        ('[defaults]\nsystem = "r"\nworkload = []', "makes no scenario"),
        ('[defaults]\nsystem = "r"\nworkload = "log"\nseeds = { count = 9999999 }', "seeds takes"),
        (
            '[defaults]\nsystem = ["a", "b"]\nworkload = "log"\nseeds = { count = 9999 }',
            "makes 19998 scenarios, the suite may have 10000",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_and_key(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as raised:
        parse_suite(text, "suite.toml")
    assert str(raised.value).startswith("suite.toml: ")


EXPECTED = """
[defaults]
system = "redis"
workload = "set"
[[matrix]]
seeds = [1, 2]
expect = "invalid"
because = "a failover throws writes away"
anomalies = ["lost"]
[[matrix]]
expect = "valid"
because = "nothing strikes"
[[matrix]]
"""


def test_what_is_expected_is_expected_of_each_scenario_of_its_matrix() -> None:
    expected = [row.expected for row in parse_suite(EXPECTED, "mine.toml").rows]
    lost = Expectation(name="invalid", because="a failover throws writes away", anomalies=("lost",))
    assert expected == [lost, lost, Expectation(name="valid", because="nothing strikes"), None]


def test_an_expectation_is_met_by_its_verdict_and_by_no_other_anomalies_than_those_it_names() -> None:
    lost = Expectation(name="invalid", because="it fails over", anomalies=("lost", "stale"))
    assert lost.met_by(Verdict.INVALID, ["lost"])
    assert lost.words(Verdict.INVALID, ["lost"]) == "INVALID as expected: because it fails over"
    assert not lost.met_by(Verdict.INVALID, ["lost", "unexpected"])
    words = "INVALID with unexpected, where no anomaly but lost, stale was expected because it fails over"
    assert lost.words(Verdict.INVALID, ["lost", "unexpected"]) == words
    for verdict in (Verdict.VALID, Verdict.UNKNOWN):
        assert not lost.met_by(verdict, [])
    assert lost.words(Verdict.VALID, []) == "VALID, where INVALID was expected because it fails over"
    broken = Expectation(name="not-valid", because="it may not serve any more", anomalies=("lost",))
    assert broken.met_by(Verdict.UNKNOWN, []) and broken.met_by(Verdict.INVALID, ["lost"])
    assert not broken.met_by(Verdict.VALID, []) and not broken.met_by(Verdict.INVALID, ["stale"])
    words = "VALID, where NOT-VALID was expected because it may not serve any more"
    assert broken.words(Verdict.VALID, []) == words
    assert Expectation(name="valid", because="it is healthy").met_by(Verdict.VALID, ["whichever, legal"])


def test_an_unknown_suite_is_refused_with_the_shipped_ones() -> None:
    with pytest.raises(UsageError, match=r"no suite file weekly; give a TOML file, or one of: .*nightly.*, smoke"):
        load_suite("weekly")


@pytest.mark.parametrize("name", shipped())
def test_every_scenario_of_a_shipped_suite_can_be_run(name: str) -> None:
    suite = load_suite(name)
    assert suite.scenarios
    for scenario in suite.scenarios:
        registry.environment_of(scenario, registry.resolve(scenario))
        assert scenario.environment in registry.names("environments")
