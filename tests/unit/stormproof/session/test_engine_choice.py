"""In this process what is faster there and fits, on Spark the rest; what was asked for is done or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.record.scenario import Scenario
from stormproof.session import engines
from stormproof.session.engines import AUTO, IN_PROCESS, SPARK, SPARK_PAYS_FROM, choose, require_engine

PLENTY = 2**50
FEW_ROWS = 1_000
MANY_ROWS = SPARK_PAYS_FROM


@pytest.fixture(autouse=True)
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    with_java(monkeypatch, there=True)


def with_java(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    def require() -> None:
        if not there:
            raise HarnessError("Spark needs Java")

    monkeypatch.setattr(engines, "require_java", require)
    monkeypatch.setattr(engines, "adopt_java", lambda: None)
    monkeypatch.setattr(engines, "find_java", lambda: object() if there else None)


def test_few_rows_are_checked_in_this_process_and_many_on_spark() -> None:
    few = choose(AUTO, None, rows=MANY_ROWS - 1, subject="log", free_bytes=PLENTY)
    many = choose(AUTO, None, rows=MANY_ROWS, subject="log", free_bytes=PLENTY)
    assert (few.name, many.name) == (IN_PROCESS, SPARK)
    assert few.words() == f"in-process: {MANY_ROWS - 1:,} rows, Spark is not faster below {MANY_ROWS:,}"
    assert many.words() == f"on Spark: {MANY_ROWS:,} rows, Spark may be faster from {MANY_ROWS:,} on"


def test_what_does_not_fit_into_memory_goes_to_spark() -> None:
    chosen = choose(AUTO, None, rows=2_000_000, subject="list-append", free_bytes=2**30)
    assert chosen.words() == ("on Spark: 2,000,000 rows would take 1.3 GiB here, more than half of the 1.0 GiB free")
    assert choose(AUTO, None, rows=2_000_000, subject="list-append", free_bytes=2**32).name == IN_PROCESS
    assert choose(AUTO, None, rows=2_000_000, subject="register", free_bytes=3 * 2**29).name == IN_PROCESS


def test_a_master_means_spark() -> None:
    chosen = choose(AUTO, "spark://host:7077", rows=FEW_ROWS, subject="log", free_bytes=PLENTY)
    assert (chosen.name, chosen.master) == (SPARK, "spark://host:7077")
    assert chosen.words() == "on Spark: 1,000 rows, chosen by --master spark://host:7077"


@pytest.mark.parametrize("engine", [SPARK, IN_PROCESS])
def test_an_engine_that_is_asked_for_is_taken_for_any_number_of_rows(engine: str) -> None:
    for rows in (0, 10 * MANY_ROWS):
        assert choose(engine, None, rows=rows, subject="log", free_bytes=0).name == engine


def test_this_process_with_a_master_is_a_contradiction() -> None:
    with pytest.raises(UsageError, match="leave one of them out"):
        require_engine(IN_PROCESS, "local[2]")


def test_without_java_what_spark_would_only_do_faster_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    with_java(monkeypatch, there=False)
    chosen = choose(AUTO, None, rows=MANY_ROWS, subject="log", free_bytes=PLENTY)
    assert chosen.name == IN_PROCESS
    assert chosen.because.endswith("but there is no Java for it")


def test_without_java_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_java(monkeypatch, there=False)
    with pytest.raises(HarnessError, match="Spark needs Java"):
        choose(AUTO, None, rows=MANY_ROWS, subject="log", free_bytes=2**30)
    for engine, master in ((SPARK, None), (AUTO, "local[2]")):
        with pytest.raises(HarnessError, match="Spark needs Java"):
            require_engine(engine, master)
    require_engine(AUTO, None)


def test_a_storm_records_two_rows_for_each_operation() -> None:
    scenario = Scenario(system="s", workload="log", rate=100.0, time_limit_s=60.0, recovery_s=20.0, seed=1)
    assert engines.rows_of_storm(scenario) == 16_000


def test_free_memory_is_that_of_the_machine_or_of_the_control_group(tmp_path: Path) -> None:
    assert engines.free_memory_bytes(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    1000 kB\n")
    assert engines.free_memory_bytes(tmp_path) == 1_024_000
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("400\n")
    assert engines.free_memory_bytes(tmp_path) == 1_024_000
    (group / "memory.max").write_text("1000\n")
    (group / "memory.stat").write_text("anon 100\ninactive_file 250\n")
    assert engines.free_memory_bytes(tmp_path) == 850
