"""The live line and the colours: what is seen while something takes its time, and that nothing of it remains."""

from __future__ import annotations

import io
import os
import pty
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TextIO

import pytest

from harness.progress import Moment, RunProgress
from harness.record.fault_row import FaultRow
from stormproof.cli import console as console_module
from stormproof.cli.console import Console, Output, Tone, Watching, remark, remark_at_once, settle, shows_colours
from stormproof.cli.live_line import LiveLine
from tests.terminal import Screen, sized

END = "<end>"
STORM = Moment("storm", at_s=10.0, left_s=50.0, ok=900, failed=30, unknown=3, faults=("isolate primary (b1)",))


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """What is written to it, and a sign of each write."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        done = super().write(text)
        self.written.set()
        return done


def live(clock: Clock, *, in_place: bool = True) -> tuple[LiveLine, Terminal]:
    stream = Terminal()
    return LiveLine(stream, in_place=in_place, started=clock.now - 7.0, clock=clock), stream


def test_a_storm_shows_the_time_left_the_rates_of_the_last_seconds_and_the_faults_that_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    line, stream = live(clock)
    monkeypatch.setattr("stormproof.cli.live_line.FALLBACK_COLUMNS", 200)
    line.report(STORM._replace(at_s=0.0, ok=0, failed=0, unknown=0))
    for second in range(1, 11):
        line.report(STORM._replace(at_s=float(second), ok=90 * second, failed=3 * second, unknown=second))
        line.draw()
    line.report(STORM._replace(at_s=11.0, left_s=49.0, ok=900, failed=130, unknown=10))
    line.draw()
    seen = Screen(200).feed(stream.getvalue()).seen
    assert seen == ["    7.0 s  storm, 49 s left · 60 ok, 35 failed, 1 unknown a second · faults: isolate primary (b1)"]
    line.end()


def test_the_time_goes_on_where_nothing_is_reported() -> None:
    clock = Clock()
    line, stream = live(clock)
    line.report(STORM)
    clock.now += 4
    line.draw()
    assert "46 s left" in stream.getvalue()
    clock.now += 100
    line.draw()
    assert "storm, 0 s left" in Screen(80).feed(stream.getvalue()).seen[0]
    line.report(Moment("checking: log (spark)"))
    clock.now += 12
    line.draw()
    assert Screen(80).feed(stream.getvalue()).seen == ["  123.0 s  checking: log (spark), 12 s"]
    line.end()


@pytest.mark.parametrize("columns", [1, 2, 9, 20, 61, 80])
@pytest.mark.parametrize("fault", ["isolate primary (b1, b2, b3)", "isolate 主節點與副本全部 (代理一)"])
def test_it_is_never_wider_than_the_terminal(columns: int, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormproof.cli.live_line.FALLBACK_COLUMNS", columns)
    line, stream = live(Clock())
    line.report(STORM._replace(faults=(fault,) * 9))
    for _ in range(3):
        line.draw()
    text = stream.getvalue().rpartition("\r")[2].removesuffix("\x1b[K")
    wide = sum(2 if "\u2e80" < character < "\ua000" else 1 for character in text)
    assert wide < columns or text == ""
    assert len(Screen(columns).feed(stream.getvalue()).seen) == 1
    line.end()


def test_a_hostile_name_acts_on_no_terminal() -> None:
    line, stream = live(Clock())
    line.report(STORM._replace(doing="\x1b[2J\r\nverdict VALID"))
    line.draw()
    assert len(Screen(80).feed(stream.getvalue()).seen) == 1
    line.end()


def test_its_end_leaves_nothing_and_it_begins_again_with_the_next_moment() -> None:
    line, stream = live(Clock())
    line.report(STORM)
    line.draw()
    line.end()
    line.draw()
    assert Screen(80).feed(stream.getvalue()).seen == [""]
    line.report(STORM)
    line.draw()
    assert Screen(80).feed(stream.getvalue()).seen != [""]
    line.end()


def test_it_is_drawn_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormproof.cli.live_line.REDRAWN_EVERY_S", 0.01)
    line, stream = live(Clock())
    line.report(STORM)
    assert stream.written.wait(30)
    line.end()
    assert Screen(80).feed(stream.getvalue()).seen == [""]


def test_without_a_terminal_it_is_a_plain_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormproof.cli.live_line.SAID_EVERY_S", 0.01)
    line, stream = live(Clock(), in_place=False)
    line.report(STORM)
    assert stream.written.wait(30)
    line.end()
    assert stream.getvalue().startswith("    7.0 s  storm, 50 s left")
    assert "\x1b" not in stream.getvalue()
    assert "\r" not in stream.getvalue()


def test_the_work_goes_on_when_the_reader_of_the_output_is_gone() -> None:
    line, stream = live(Clock())
    stream.close()
    line.report(STORM)
    line.draw()
    line.end()


def test_a_run_counts_completions_and_names_the_faults_that_stand() -> None:
    from harness.operation import Operation

    reported: list[Any] = []
    run = RunProgress(reported.append)
    nodes = ("b1", "b2", "b3", "b4", "b5")
    row = FaultRow(
        time_ns=0, package="partition", number=1, starts=True, kind="partition", nodes=nodes, happened=True,
        shape="isolate primary",
    )  # fmt: skip
    run.begin("storm", until_ns=60 * 10**9)
    run.struck(row)
    run.struck(replace(row, number=2, happened=False))
    run.completed(Operation(0, "ok", "send", time=12 * 10**9))
    run.struck(replace(row, starts=False))
    run.completed(Operation(0, "info", "send", time=61 * 10**9))
    assert reported == [
        Moment("storm"),
        Moment("storm", 12.0, 48.0, 1, 0, 0, ("isolate primary (b1, b2, b3 and 2 more)",)),
        Moment("storm", 61.0, 0.0, 1, 0, 1, ()),
    ]


@pytest.fixture
def terminals(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TextIO, int]]:
    """A stream on a terminal of 60 columns, and its other end."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(console_module, "_live", None)
    ours, theirs = pty.openpty()
    with os.fdopen(sized(theirs, 60), "w") as stream:
        yield stream, ours
        settle()
    os.close(ours)


@contextmanager
def standing_for_ours(stream: TextIO) -> Iterator[None]:
    """Standard output and standard error go there. Not in the fixture: pytest puts its own in place after it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        patched.setattr(sys, "stderr", stream)
        yield


def written_to(stream: TextIO, terminal: int) -> str:
    """All of it: what was written last arrives last, if not at once."""
    os.write(stream.fileno(), END.encode())
    written = b""
    while END.encode() not in written:
        assert select.select([terminal], [], [], 30)[0], written
        written += os.read(terminal, 1 << 16)
    return written.decode().removesuffix(END)


def seen_on(stream: TextIO, terminal: int) -> Screen:
    return Screen(60).feed(written_to(stream, terminal))


def test_any_other_line_takes_the_place_of_the_live_one(terminals: tuple[TextIO, int]) -> None:
    stream, terminal = terminals
    console = Console(watching=Watching.YES)
    with standing_for_ours(stream):
        for other in (
            lambda: console.say("said"),
            lambda: console.progress("went on"),
            lambda: remark("remarked"),
            lambda: Console(output=Output.JSON).result({}),
        ):
            console.progress(STORM)
            assert console_module._live is not None
            console_module._live.draw()
            other()
        settle()
    lines = seen_on(stream, terminal).seen
    assert [line.split("  ")[-1] for line in lines] == ["said", "went on", "stormproof: remarked", "{}", ""]


def test_quiet_is_quiet(terminals: tuple[TextIO, int]) -> None:
    stream, terminal = terminals
    console = Console(watching=Watching.NO)
    with standing_for_ours(stream):
        console.progress(STORM)
        console.say("said")
    assert console_module._live is None
    assert seen_on(stream, terminal).seen == ["said", ""]


def test_where_nobody_asked_only_what_takes_long_is_told() -> None:
    stream = io.StringIO()
    with standing_for_ours(stream):
        console = Console(watching=Watching.when(None))
        console.progress("began")
        console.progress(Moment("searching", detail="7 configurations"))
        assert console_module._live is not None
        console_module._live.draw()
        settle()
    [line] = stream.getvalue().splitlines()
    assert line.endswith("searching, 0 s · 7 configurations")


@pytest.mark.parametrize(("tone", "colour"), [(Tone.GOOD, "1;32"), (Tone.BAD, "1;31"), (Tone.DOUBT, "1;33")])
def test_a_terminal_shows_a_verdict_in_its_colour_and_the_text_in_it_acts_on_nothing(
    terminals: tuple[TextIO, int], tone: Tone, colour: str
) -> None:
    stream, terminal = terminals
    with standing_for_ours(stream):
        Console().say("verdict \x1b[32mVALID", tone)
        Console().say("reason")
    screen = seen_on(stream, terminal)
    assert screen.seen == [r"verdict \x1b[32mVALID", "reason", ""]
    assert screen.colours == [(r"verdict \x1b[32mVALID", colour)]


@pytest.mark.parametrize(
    ("environment", "on_a_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": "0"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": ""}, True, False),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colours_can_be_turned_off(
    terminals: tuple[TextIO, int],
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    on_a_terminal: bool,
    elsewhere: bool,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert shows_colours(terminals[0]) is on_a_terminal
    assert shows_colours(io.StringIO()) is elsewhere


def test_json_has_no_colours_even_if_they_are_forced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    Console(output=Output.JSON).say("verdict   VALID", Tone.GOOD)
    Console(output=Output.JSON).result({"verdict": "valid"})
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err


def test_a_terminal_that_cannot_be_erased_gets_plain_lines(
    terminals: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, terminal = terminals
    monkeypatch.setenv("TERM", "dumb")
    with standing_for_ours(stream):
        Console(watching=Watching.YES).progress(STORM)
        assert console_module._live is not None
        console_module._live.draw()
        settle()
    written = written_to(stream, terminal)
    assert "storm, 50 s left" in written
    assert "\x1b" not in written


def test_a_remark_leaves_the_live_line_below_it(terminals: tuple[TextIO, int]) -> None:
    stream, terminal = terminals
    with standing_for_ours(stream):
        Console(watching=Watching.YES).progress(STORM)
        assert console_module._live is not None
        console_module._live.draw()
        remark("a node is slow")
        console_module._live.draw()
        lines = seen_on(stream, terminal).seen
        assert lines[0] == "stormproof: a node is slow"
        assert "storm, 50 s left" in lines[1]
        settle()


def test_what_a_signals_handler_says_takes_the_place_of_the_live_line(
    terminals: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, terminal = terminals
    monkeypatch.setattr(console_module, "STANDARD_ERROR", stream.fileno())
    with standing_for_ours(stream):
        Console(watching=Watching.YES).progress(STORM)
        assert console_module._live is not None
        console_module._live.draw()
        remark_at_once("ending")
        assert seen_on(stream, terminal).seen == ["stormproof: ending", ""]
        settle()
