"""`stormproof explore`: storms on Spark, kept by rounds; the same command goes on, and anywhere gives the same rows."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.spark.java import JavaMissing, require_java
from checkers.spark.session import spark_session
from stormproof.search.compare import Chase, chased
from stormproof.search.guide import LAG, Guide
from stormproof.search.search import Search, here, searched
from stormproof.search.space import Space
from stormproof.search.spark_runner import OnSpark
from stormproof.search.store import Store
from stormproof.search.trial import GUIDED, ROWS
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
    rows = here(Guide(space=space, root=11).proposed(range(2))).result()
    assert kept.equals(rows.drop_columns(["processor_s"]))
    again = stormproof(*EXPLORE, "--seeds", "0..1", "--json")
    assert again.code == first.code
    assert again.json["storms"] == 2
    other = stormproof(*EXPLORE, "--seeds", "5..6", "--into", directory)
    assert other.code == 254
    assert "holds another search (first was 0, is 5); name another directory with --into" in other.err


@pytest.mark.gate
def test_a_search_on_spark_learns_what_one_in_this_process_learns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_round = 2
    monkeypatch.setattr("stormproof.search.search.ROUND", a_round)
    small = {"time_scale": 0.1, "brokers": 2, "controllers": 1}
    space = Space(system="rocketmq", workload="log", settings=small, nemesis=("kill",))
    search = Search(space=space, root=11, numbers=range((3 + LAG) * a_round))
    rows = []
    with OnSpark(spark_session("local[2]")).trying() as on_spark:
        for name, trier in (("here", here), ("spark", on_spark)):
            store = Store(tmp_path / name, search.to_json())
            list(searched(search, store, trier))
            rows.append(pq.read_table(store.rounds).drop_columns(["processor_s"]))
    assert GUIDED in rows[0].column("origin").to_pylist()
    assert rows[0].equals(rows[1])


def test_a_round_is_under_way_on_spark_while_the_one_before_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    all_are_there = threading.Barrier(1 + LAG)

    def waits(*arguments: Any) -> pa.Table:
        all_are_there.wait(timeout=60)
        return ROWS.empty_table()

    monkeypatch.setattr(OnSpark, "_each", waits)
    with OnSpark(spark_session("local[2]")).trying() as trier:
        rounds = [trier([]) for _ in range(1 + LAG)]
        assert all(each.result().num_rows == 0 for each in rounds)


def test_rounds_under_way_are_cancelled_where_a_search_ends_without_them() -> None:
    spark = spark_session("local[2]")
    space = Space(system="rocketmq", settings={})
    with OnSpark(spark).trying() as trier:
        under_way = trier(Guide(space=space, root=11).proposed(range(200)))
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            assert not under_way.done()
    with pytest.raises(Exception, match="cancelled"):
        under_way.result(timeout=60)


@pytest.mark.gate
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
