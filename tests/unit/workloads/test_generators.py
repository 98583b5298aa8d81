"""What the workloads ask of clients: unique values, and final reads that go on until all is read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import UsageError
from harness.generator import limit, perfect, simulate
from harness.operation import Operation
from harness.record.scenario import Scenario
from harness.seed import Seed
from stormproof.session.check_spec import of_workload
from stormproof.session.registry import resolve, typed_settings, workloads
from stormproof.session.registry import workload as workload_named
from workloads.log import WORKLOAD as LOG
from workloads.log import FinalRead, FinalReads, LogSettings, queue_key
from workloads.register import WORKLOAD as REGISTER
from workloads.register import RegisterSettings

RUNNABLE = [name for name, workload in workloads().items() if workload.generator is not None]


def _invocations(generator: object, count: int) -> list[Operation]:
    history = simulate(limit(count, generator), completion=perfect(), concurrency=5)  # type: ignore[arg-type]
    return [operation for operation in history if operation.type == "invoke"]


def test_no_message_is_sent_twice_and_both_kinds_are_asked_for() -> None:
    operations = _invocations(LOG.generator(LogSettings(queues=3), Seed(1), 5), 500)
    sent = [operation.value["message"] for operation in operations if operation.f == "send" and operation.value]
    assert len(sent) == len(set(sent))
    assert 150 < len(sent) < 350
    assert {operation.key for operation in operations} == {queue_key(queue) for queue in range(3)}


def test_written_values_are_unique_and_a_cas_expects_what_may_be_there() -> None:
    operations = _invocations(REGISTER.generator(RegisterSettings(keys=2), Seed(1), 5), 500)
    meant: dict[str | None, set[int]] = {}
    for operation in operations:
        if operation.f == "read":
            continue
        assert operation.value is not None
        seen = meant.setdefault(operation.key, set())
        if operation.f == "cas":
            assert operation.value["expected"] in seen
        assert operation.value["value"] not in seen
        seen.add(operation.value["value"])
    assert {operation.f for operation in operations} == {"read", "write", "cas"}


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_storm_asks_for_every_kind_that_it_requires_and_repeats_with_its_seed(name: str) -> None:
    workload = workload_named(name)
    assert workload.generator is not None and workload.final_generator is not None
    settings = workload.settings_type()
    first, second = (_invocations(workload.generator(settings, Seed(1), 5), 300) for _ in range(2))
    assert first == second
    assert {operation.f for operation in first} >= set(workload.required_ok) >= set(workload.required_share)
    final = _invocations(workload.final_generator(settings, Seed(1), 5, ("n1",)), 10_000)
    assert len(final) < 10_000
    assert {operation.f for operation in (*first, *final)} <= set(workload.functions)


@pytest.mark.parametrize(("name", "writes"), [("list-append", "append"), ("rw-register", "w"), ("causal", "w")])
def test_no_transaction_writes_what_another_one_wrote(name: str, writes: str) -> None:
    workload = workload_named(name)
    assert workload.generator is not None
    operations = _invocations(workload.generator(workload.settings_type(), Seed(1), 5), 300)
    parts = [part for operation in operations if operation.value for part in operation.value["txn"]]
    written = [part["value"] for part in parts if part["f"] == writes]
    assert len(written) == len(set(written)) and 0 not in written[1:]
    assert {part["f"] for part in parts} == {"r", writes}


def test_a_pair_of_registers_is_written_once_each_and_read_in_between() -> None:
    workload = workload_named("long-fork")
    assert workload.generator is not None
    operations = _invocations(workload.generator(workload.settings_type(), Seed(1), 5), 240)
    parts = [part for operation in operations if operation.value for part in operation.value["txn"]]
    written = [part["key"] for part in parts if part["f"] == "w"]
    assert len(written) == len(set(written)) == 40


@pytest.mark.parametrize(
    ("workload", "elsewhere", "here"),
    [
        ("counter", {"initial": 5}, {"initial": 0}),
        ("causal", {"initial": 7}, {"initial": 0}),
        ("bank", {"accounts": 1}, {"accounts": 2}),
        ("bank", {"accounts": 1_001}, {"accounts": 1_000}),
        ("bank", {"accounts": 4, "total": 80}, {"accounts": 4, "total": 40}),
    ],
    ids=str,
)
def test_a_setting_that_a_run_cannot_make_true_is_for_histories_recorded_elsewhere(
    workload: str, elsewhere: dict[str, int], here: dict[str, int]
) -> None:
    run = Scenario(system="rocketmq", workload=workload, seed=1)
    with pytest.raises(UsageError, match=r"expected .*, got .*leave it out of the run .*stormproof check HISTORY"):
        resolve(replace(run, settings=elsewhere))
    assert of_workload(workload, [f"{name}={value}" for name, value in elsewhere.items()]).checkers
    assert resolve(replace(run, settings=here)).workload_settings == typed_settings(
        workload_named(workload).settings_type, here
    )


def test_values_repeat_where_they_need_not_be_unique() -> None:
    operations = _invocations(REGISTER.generator(RegisterSettings(keys=1, unique=False), Seed(1), 5), 200)
    assert {o.value["value"] for o in operations if o.f == "write" and o.value} <= set(range(5))


def _done(read: FinalRead, f: str, type_: str, offset: int, messages: list[dict[str, int]]) -> FinalRead:
    event = Operation(0, type_, f, {"message": None, "offset": offset, "messages": messages}, time=10)  # type: ignore[arg-type]
    return read.after(event)


def test_a_final_read_ends_only_when_the_end_was_confirmed() -> None:
    read = _done(FinalRead("storm/0", "b1"), "final-poll", "ok", 2, [{"offset": 0, "message": 7}])
    assert (read.position, read.at_end, read.done) == (2, False, False)
    read = _done(read, "final-poll", "ok", 2, [])
    assert (read.at_end, read.done) == (True, False)
    again = _done(read, "caught-up", "fail", 2, [])
    assert (again.at_end, again.done, again.position) == (False, False, 2)
    assert _done(read, "caught-up", "ok", 2, []).done


def test_a_replica_that_never_answers_is_given_up() -> None:
    read, tries = FinalRead("storm/0", "b1"), 0
    while not read.done:
        read, tries = _done(read, "final-poll", "info", 0, []), tries + 1
    assert tries == 60


def test_final_reads_cover_every_queue_at_every_replica() -> None:
    generator = LOG.final_generator(LogSettings(queues=2), Seed(0), 5, ("b1", "b2"))
    assert isinstance(generator, FinalReads)
    assert {(read.key, read.node) for read in generator.reads} == {
        ("storm/0", "b1"), ("storm/0", "b2"), ("storm/1", "b1"), ("storm/1", "b2"),
    }  # fmt: skip


@pytest.mark.parametrize("wrong", [{"queues": 0}, {"queues": 17}, {"send_share": 1.0}], ids=str)
def test_wrong_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        typed_settings(LogSettings, wrong)
