"""A machine's clock is set as the fault says, and given back, by a fake of the calls: no real clock is touched here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.environments.remote import agent, real_clock
from harness.environments.ssh import machine_lease

SECOND_NS = 10**9
AHEAD_NS = 1_700_000_000 * SECOND_NS


class FakeClock:
    """Both clocks run alike until the wall clock is set."""

    def __init__(self) -> None:
        self.now_ns = 5_000 * SECOND_NS
        self.ahead_ns = AHEAD_NS
        self.refuses = False

    def wall_ns(self) -> int:
        return self.now_ns + self.ahead_ns

    def boot_ns(self) -> int:
        return self.now_ns

    def set_wall_ns(self, wall_ns: int) -> None:
        if self.refuses:
            raise PermissionError(1, "Operation not permitted")
        self.ahead_ns = wall_ns - self.now_ns

    @property
    def error_s(self) -> float:
        return (self.ahead_ns - AHEAD_NS) / SECOND_NS


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(real_clock, "CLOCK", fake)
    monkeypatch.setattr(real_clock, "STATE", str(tmp_path / "state" / "clock.json"))
    monkeypatch.setattr(real_clock, "MOVER", str(tmp_path / "state" / "mover"))
    return fake


def test_a_clock_jumps_and_is_given_back_however_much_time_has_passed(clock: FakeClock) -> None:
    told = real_clock.set_clock({"offset_s": -300.0, "rate": 1.0})
    assert (told["before_s"], told["after_s"], told["unreached"]) == (0.0, -300.0, [])
    assert clock.error_s == -300.0
    clock.now_ns += 3_600 * SECOND_NS
    assert real_clock.set_clock({"offset_s": 20.0, "rate": 1.0})["before_s"] == -300.0
    assert clock.error_s == 20.0
    clock.now_ns += 3_600 * SECOND_NS
    assert real_clock.give_back({}) == {"was_set": True}
    assert clock.error_s == 0.0
    assert real_clock.give_back({}) == {"was_set": False}


def test_a_clock_that_was_never_set_is_left_alone(clock: FakeClock) -> None:
    clock.refuses = True
    assert real_clock.give_back({}) == {"was_set": False}


def test_what_the_true_time_is_was_noted_before_the_clock_is_set(clock: FakeClock) -> None:
    """A harness that dies in between leaves it to whoever gives the clock back."""
    clock.refuses = True
    with pytest.raises(SystemExit, match="the machine's clock cannot be set: Operation not permitted"):
        real_clock.set_clock({"offset_s": 5.0, "rate": 1.0})
    assert json.loads(Path(real_clock.STATE).read_text())["ahead_ns"] == AHEAD_NS
    with pytest.raises(SystemExit, match="cannot be set"):
        real_clock.give_back({})
    clock.refuses = False
    assert real_clock.give_back({}) == {"was_set": True}, "a clock that could not be given back was forgotten"


def test_a_clock_drifts_and_flips_by_all_that_is_wrong_with_it(clock: FakeClock) -> None:
    state = {
        "ahead_ns": AHEAD_NS,
        "offset_s": 7.0,
        "rate": 1.5,
        "since_ns": clock.now_ns,
        "strobes": [{"offset_ms": 1000.0, "period_ms": 300.0}, {"offset_ms": -10.0, "period_ms": 300.0}],
    }
    for passed_ms in range(0, 2_000, 10):
        boot_ns = clock.now_ns + passed_ms * 10**6
        flips_s = 0.99 if int(boot_ns / 3e8) % 2 else 0.0
        wrong_s = (real_clock._wrong_ns(state, boot_ns) - boot_ns - AHEAD_NS) / SECOND_NS
        assert wrong_s == pytest.approx(7.0 + 0.5 * passed_ms / 1e3 + flips_s)
        assert 0 < real_clock._until_next_s(state, boot_ns) <= real_clock.DRIFT_STEP_S
    flipping = {**state, "rate": 1.0}
    assert real_clock._until_next_s(flipping, 10 * SECOND_NS + 10**8) == pytest.approx(0.1), (
        "of 300 ms, 200 have passed"
    )


def test_a_drift_and_strobes_are_gone_with_the_process_that_moves_the_clock(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is a sleeping one here: a real one would set the real clock."""
    monkeypatch.setattr(real_clock.sys, "executable", "sleep-for-a-clock")
    started = []

    def sleeping(command: list[str], **_: object) -> object:
        started.append(POPEN(["sleep", "600"]))
        assert command[-2:] == ["move", "{}"]
        return started[-1]

    POPEN = real_clock.subprocess.Popen
    monkeypatch.setattr(real_clock.subprocess, "Popen", sleeping)
    real_clock.set_clock({"offset_s": 0.0, "rate": 1.1})
    real_clock.strobe({"strobes": [{"offset_ms": 1000.0, "period_ms": 300.0}]})
    assert [one.poll() for one in started][1:] == [None] and started[0].wait(5) == -9
    real_clock.give_back({})
    assert started[1].wait(5) == -9
    assert clock.error_s == 0.0


def test_the_agent_the_keeper_and_the_clock_mean_the_same_places() -> None:
    assert real_clock.STATE.startswith(f"{agent.STATE}/") and real_clock.MOVER.startswith(f"{agent.STATE}/")
    assert agent.REAL_CLOCK.startswith(f"{machine_lease.HOME}/")


def test_the_agent_gives_the_clock_back_when_it_leaves_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "real_clock.py"
    tool.write_text(f"import sys; open({str(tmp_path / 'asked')!r}, 'w').write(' '.join(sys.argv[1:])); print('{{}}')")
    monkeypatch.setattr(agent, "REAL_CLOCK", str(tool))
    monkeypatch.setattr(agent, "SHARED_BY_LIBFAKETIME", ())
    for name in ("STATE", "SUPERVISOR", "PROGRAM", "EXIT", "DRIFT", "CLOCK", "CLOCK_STATE", "LIMIT", "RELAY"):
        monkeypatch.setattr(agent, name, str(tmp_path / name))
    for name in ("CONTROL_GROUPS", "CAPTURE"):
        monkeypatch.setattr(agent, name, str(tmp_path / f"{name}.py"))
    assert agent.leave({})["after"] == "gone"
    assert (tmp_path / "asked").read_text() == "give_back {}"
    assert agent._faked() == {}, "a program reads a clock that is faked beside that of its machine"


def test_whoever_keeps_the_machine_in_time_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = Path("/proc/self/comm").read_text().strip()
    monkeypatch.setattr(real_clock, "KEEPERS", (name,))
    monkeypatch.setattr(real_clock, "CAP_SYS_TIME", 0)  # which root has everywhere
    assert real_clock._why_not() == f"runs {name}, which would set its clock right again: stop it for the run"
    monkeypatch.setattr(real_clock, "CAP_SYS_TIME", 63)
    assert real_clock._why_not() == "lets nobody set its clock (CAP_SYS_TIME)"
