"""What the workload `lock` asks of clients: who holds a lock asks for nothing else until it is known to be released."""

from __future__ import annotations

from dataclasses import replace

from harness.generator import Context, Generator, time_limit
from harness.operation import Operation
from harness.seed import Seed
from workloads.lock import LOCK_LOST, WORKLOAD, LockSettings

SECOND_NS = 10**9


class Talk:
    """One process that is answered by hand."""

    def __init__(self, **settings: object) -> None:
        assert WORKLOAD.generator is not None
        self.generator: Generator = WORKLOAD.generator(replace(LockSettings(), **settings), Seed(1), 1)
        self.context = Context.start(concurrency=1, nemesis=False)

    def asked(self) -> Operation:
        emission = self.generator.op(self.context)
        assert emission is not None
        operation, self.generator = emission
        assert isinstance(operation, Operation)
        self.context = self.context.at(max(operation.time, self.context.time)).busy(0)
        self.generator = self.generator.update(self.context, operation._replace(time=self.context.time))
        return operation

    def answered(self, operation: Operation, ended: str, *, value: int | None = None, error: str | None = None) -> None:
        answer = operation._replace(type=ended, value={"value": value}, error=error, time=self.context.time)
        self.context = self.context.freed(0)
        if ended == "info":
            self.context = self.context.retired(0)
        self.generator = self.generator.update(self.context, answer)


def test_who_got_a_lock_holds_it_for_a_while_and_releases_just_that_one() -> None:
    talk = Talk(hold_s=1.0, fencing=True)
    acquire = talk.asked()
    talk.answered(acquire, "ok", value=41)
    release = talk.asked()
    assert (acquire.f, release.f, release.key) == ("acquire", "release", acquire.key)
    assert 0 < release.time <= 2 * SECOND_NS and release.value == {"value": 41}


def test_without_fencing_no_token_is_named() -> None:
    talk = Talk()
    talk.answered(talk.asked(), "ok", value=41)
    assert talk.asked().value == {"value": None}


def test_a_release_is_asked_for_again_until_it_is_known_what_came_of_it() -> None:
    talk = Talk()
    talk.answered(talk.asked(), "ok")
    for _ in range(3):
        release = talk.asked()
        assert release.f == "release"
        talk.answered(release, "fail", error="connect-failed")
    talk.answered(talk.asked(), "ok")
    assert talk.asked().f == "acquire"


def test_a_lock_that_was_lost_and_one_whose_holder_is_gone_are_not_released() -> None:
    talk = Talk(fencing=True)
    talk.answered(talk.asked(), "ok", value=1)
    talk.answered(talk.asked(), "fail", error=LOCK_LOST.code)
    acquire = talk.asked()
    assert acquire.f == "acquire"
    talk.answered(acquire, "ok", value=2)
    talk.answered(talk.asked(), "info")
    assert talk.asked().f == "acquire"


def test_who_was_refused_holds_nothing() -> None:
    talk = Talk()
    talk.answered(talk.asked(), "fail", error="precondition-failed")
    assert talk.asked().f == "acquire"


def test_a_storm_lasts_as_long_as_it_is_given_however_long_the_system_took_to_start() -> None:
    """An operation without a time would make the limit count from the beginning of the run."""
    talk = Talk()
    talk.generator = time_limit(40, talk.generator)
    talk.context = talk.context.at(60 * SECOND_NS)
    acquire = talk.asked()
    assert acquire.time == 60 * SECOND_NS
    talk.answered(acquire, "fail", error="precondition-failed")
    assert talk.asked().f == "acquire"
