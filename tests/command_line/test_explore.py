"""`stormproof explore`: storms on Spark, kept by rounds; the same command goes on, and anywhere gives the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from checkers.spark.java import JavaMissing, require_java
from harness.explore.compare import Chase, chased
from harness.explore.guide import Guide
from harness.explore.search import Search, here
from harness.explore.space import Space
from tests.command_line.answers import Stormproof

pytestmark = pytest.mark.xdist_group("spark")
EXPLORE = ("explore", "rocketmq", "--seed", "11", "--set", "time_scale=0.1", "--master", "local[2]")


@pytest.fixture(autouse=True)
def java() -> None:
    try:
        require_java()
    except JavaMissing as missing:
        pytest.skip(f"not run: {missing}")


def test_storms_on_spark_are_those_of_this_process_and_are_kept(stormproof: Stormproof) -> None:
    first = stormproof(*EXPLORE, "--seeds", "0..1")
    assert first.code in (0, 1, 2), first.err
    assert "search    rocketmq, guided, root seed 11" in first.out
    directory = Path("explored/rocketmq-11")
    kept = pq.read_table(directory / "rounds").drop_columns(["processor_s"])
    space = Space(system="rocketmq", settings={"time_scale": 0.1})
    rows = here(Guide(space=space, root=11).proposed(range(2)))
    assert kept.equals(rows.drop_columns(["processor_s"]))
    again = stormproof(*EXPLORE, "--seeds", "0..1", "--json")
    assert again.code == first.code
    assert again.json["storms"] == 2
    other = stormproof(*EXPLORE, "--seeds", "5..6", "--into", directory)
    assert other.code == 254
    assert "holds another search (first was 0, is 5); name another directory with --into" in other.err


def test_searches_are_compared_on_spark_as_they_end_in_this_process(stormproof: Stormproof) -> None:
    compared = stormproof(
        *EXPLORE, "--seeds", "0..0", "--mutant", "flush-lie", "--compare", "random", "--roots", "1", "--json"
    )
    assert compared.code == 0, compared.err
    ((told,),) = compared.json.values()
    space = Space(system="rocketmq", mutant="flush-lie", settings={"time_scale": 0.1})
    for is_guided, (chase,) in ((True, told["guided"]), (False, told["random"])):
        search = Search(space=space, root=11, numbers=range(1), is_guided=is_guided)
        expected = replace(chased(search, None), processor_s=0.0)
        assert replace(Chase.from_json(chase), processor_s=0.0) == expected
