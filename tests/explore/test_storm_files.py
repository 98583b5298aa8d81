"""Storm files are read back as they were written, refused with their line, replayed, and become tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.record.scenario import Scenario
from stormproof.cli import main
from stormproof.search.pytest_export import as_test
from stormproof.search.storm import blown_and_judged
from stormproof.search.storm_file import SCHEDULE_SAYS, StormFile, load_storm, parse_storm, storm_text
from stormproof.session.registry import resolve

LOSES = Scenario(
    system="rocketmq",
    workload="queue",
    schedule=("# the machine loses power with a message that nobody has fsynced", "4.5 for 0.5 power off b1 [power 0]"),
    settings={"brokers": 1, "controllers": 1, "min_in_sync_replicas": 1, "queues": 1},
    mutant="flush-lie",
    world="calm",
    concurrency=2,
    rate=20.0,
    operations="70-95",
    time_limit_s=5.0,
    recovery_s=5.0,
)
TRACE = "0123456789abcdef" * 2

printable = st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "), max_size=12)
names = printable.filter(str.strip)
scenarios = st.builds(
    Scenario,
    system=names,
    workload=names,
    schedule=st.lists(printable | st.sampled_from(["", "'''", "  3 for 1 kill b1 [kill 0]  "]), max_size=4).map(tuple),
    settings=st.dictionaries(names, st.booleans() | st.integers() | st.floats(allow_nan=False) | printable, max_size=3),
    mutant=st.none() | printable,
    world=st.sampled_from(["drawn", "calm"]),
    operations=st.sampled_from(["", "3", "1, 5-7"]),
    concurrency=st.integers(1, 1000),
    rate=st.floats(1e-5, 1e5),
    time_limit_s=st.floats(10, 1e5),
    liveness_s=st.floats(0, 10),
    seed=st.integers(0, 2**63 - 1),
)
storms = st.builds(StormFile, scenario=scenarios, anomaly=names, trace=st.just(TRACE))


@given(storms, st.lists(printable, max_size=2))
def test_a_storm_is_read_back_from_its_text(storm: StormFile, says: list[str]) -> None:
    assert parse_storm(storm_text(storm, says), "x.storm.toml") == storm


def test_only_what_is_unusual_is_written_down() -> None:
    text = storm_text(StormFile(scenario=LOSES, anomaly="lost", trace=TRACE), ["one page"])
    assert text.startswith(f'# one page\nanomaly = "lost"\ntrace = "{TRACE}"\nsystem = "rocketmq"\n')
    assert f"\n\n{SCHEDULE_SAYS}\nschedule = '''\n{LOSES.schedule[0]}\n{LOSES.schedule[1]}\n'''\n\n[settings]\n" in text
    assert "max_outage" not in text and "environment" not in text and len(text.splitlines()) < 30


SOUND = f"""anomaly = "lost"
trace = "{TRACE}"
system = "rocketmq"
workload = "log"
rate = 20

schedule = '''
# a comment
4.5 for 0.5 power off b1 [power 0]
'''
[settings]
brokers = 3
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rate = 20", "rate = -1", ", line 5: rate takes a number from 0 to 100000, got -1"),
        ("rate = 20", "rates = 20", ", line 5: unknown field 'rates' of a storm file; did you mean rate"),
        ("rate = 20", "rate =", ": not TOML: Invalid value (at line 5, column 7)"),
        ("rate = 20", "rate = 2" + ".0" * 501, ": line 5 has 501 dots, at most 500 can be"),
        ('system = "rocketmq"', 'system = "kafka"', ", line 3: unknown system 'kafka'; known are: "),
        ('system = "rocketmq"\n', "", ": scenario lacks the field 'system'"),
        ('anomaly = "lost"\n', "", ": it lacks the field 'anomaly', which says what the storm shows"),
        ('"lost"', "3", ", line 1: anomaly takes the name of one, such as 'lost-write', got 3"),
        (TRACE, "abc", ", line 2: trace takes the hash of a trace, 32 digits from 0 to f, got 'abc'"),
        ("for 0.5", "for x", ", line 9: schedule, line 2: expected the fault's length"),
        ("power off b1", "power off b9", ", line 9: schedule, line 2: "),
        ("brokers = 3", "brokers = 0", ", line 12: setting brokers takes a whole number from 1 to 100"),
        ("brokers = 3", "brokrs = 3", ", line 12: unknown setting 'brokrs'; did you mean brokers?"),
        (
            "[settings]",
            "nemesis = ['kill']\n[settings]",
            ": a schedule says itself which faults strike",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "x.storm.toml"
    assert SOUND.count(old) == 1
    path.write_text(SOUND.replace(old, new))
    with pytest.raises(UsageError) as refused:
        load_storm(path)
    assert str(refused.value).startswith(f"{path}{words}")


def test_a_sound_file_is_taken_and_a_missing_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.storm.toml").write_text(SOUND)
    storm, parts = load_storm(tmp_path / "x.storm.toml")
    assert (storm.scenario.rate, parts.workload.name) == (20.0, "log")
    with pytest.raises(UsageError, match=r"storm file .*y\.storm\.toml cannot be read: No such file"):
        load_storm(tmp_path / "y.storm.toml")


@pytest.fixture(scope="module")
def losing() -> StormFile:
    """A storm that loses messages where flushes lie."""
    judged = blown_and_judged(LOSES, resolve(LOSES))
    assert "lost" in judged.anomalies
    return StormFile(scenario=LOSES, anomaly="lost", trace=judged.blown.trace_hash)


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def stormproof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str]:
        code = main.run(list(arguments))
        answered = capsys.readouterr()
        return code, answered.out + answered.err

    return command


def test_a_storm_that_fails_fails_each_time(stormproof: Command, losing: StormFile) -> None:
    Path("lost.storm.toml").write_text(storm_text(losing))
    code, said = stormproof("replay", "lost.storm.toml", "--times", "3")
    assert code == 1
    assert "replayed  lost came again 3 of 3 times" in said
    assert f"the same, event for event (trace {losing.trace})" in said
    assert not list(Path().glob("runs*"))


def test_a_storm_that_is_withstood_says_that_the_code_has_changed(stormproof: Command, losing: StormFile) -> None:
    mended = replace(losing, scenario=replace(losing.scenario, mutant=None))
    Path("lost.storm.toml").write_text(storm_text(mended))
    code, said = stormproof("replay", "lost.storm.toml", "--report", "--engine", "inprocess")
    assert code == 2, "few operations decide nothing"
    assert "replayed  lost did not come again" in said
    assert f"the file has {losing.trace}): the code or its versions changed since" in said
    assert list(Path("runs").glob("*/report.html"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("lost.storm.toml", "--output", "test_lost.py"), "--output says where --as-test writes"),
        (("lost.storm.toml", "--report", "--times", "2"), "--report carries a storm out once"),
        (("lost.storm.toml", "--page", "--report"), "--page draws a storm that is carried out once"),
        (("runs/latest", "--times", "2"), "are for storm files"),
        (("lost.storm.toml", "--as-test", "-o", "nowhere/test.py"), "there is no directory nowhere"),
    ],
)
def test_what_does_not_go_together_is_refused(
    stormproof: Command, losing: StormFile, arguments: tuple[str, ...], words: str
) -> None:
    Path("lost.storm.toml").write_text(storm_text(losing))
    code, said = stormproof("replay", *arguments)
    assert code == 254
    assert words in said


def test_the_page_of_a_storm_tells_what_was_believed_and_when(stormproof: Command, losing: StormFile) -> None:
    Path("lost.storm.toml").write_text(storm_text(losing))
    assert stormproof("replay", "lost.storm.toml", "--page")[0] == 0
    text = Path("lost.storm.html").read_text()
    assert len(text) < 1_000_000
    assert "stormproof replay lost.storm.toml" in text and "<script" not in text and "http" not in text
    first, _, rest = text.partition("<details>")
    assert "b1</b> took itself for the master under epoch 1" in rest
    assert "b1</b> was struck by “power off b1”" in rest
    for drawn in ("without power", "elects b1, epoch 2", "writes ", " → ok", 'class="message"'):
        assert drawn in first, "the diagram without being asked for more"
    told = [float(line.split(" s<")[0]) for line in rest.split('<span class="at">')[1:]]
    assert told[:5] == sorted(told[:5])


def test_a_storm_file_becomes_a_test_that_fails_until_the_system_is_mended(
    stormproof: Command, losing: StormFile, tmp_path: Path
) -> None:
    Path("lost.storm.toml").write_text(storm_text(losing))
    code, _ = stormproof("replay", "lost.storm.toml", "--as-test", "-o", "test_lost.py")
    assert code == 0
    source = Path("test_lost.py").read_text()
    assert source == as_test(losing, resolve(losing.scenario))
    assert stormproof("replay", "lost.storm.toml", "--as-test") == (0, source)
    with pytest.raises(AssertionError, match="lost"):
        defined(source)(tmp_path / "broken")
    assert 'mutant="flush-lie",' in source
    defined(source.replace('mutant="flush-lie",', ""))(tmp_path / "mended")


def defined(source: str) -> Callable[[Path], None]:
    """The test of a module."""
    module: dict[str, Callable[[Path], None]] = {}
    exec(compile(source, "test_lost.py", "exec"), module)
    return module["test_no_lost"]
