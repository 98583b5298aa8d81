"""A command that gets a signal to end: nothing raises where it must not, and the end is the same at every moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import os, signal, sys, time
from pathlib import Path
from harness.environments import interruptible
from harness.lifetime import resources, interruption, scratch
interruption.install(lambda line: os.write(2, line.encode() + b"\\n"))
def send(*signals):
    for name in signals:
        os.kill(os.getpid(), getattr(signal, name))
"""


def ended(program: str, *, before: str = "") -> subprocess.CompletedProcess[str]:
    # A shell may have started the tests without this signal (nohup), which a command respects.
    heard = "signal.signal(signal.SIGHUP, signal.SIG_DFL)"
    code = f"import signal\n{heard}\n{before}\n{BEGIN}\n{program}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_command_with_nothing_to_unwind_is_gone_at_once_and_takes_what_it_holds_with_it(
    name: str, tmp_path: Path
) -> None:
    finished = ended(
        f"""
import tempfile; tempfile.tempdir = {str(tmp_path)!r}
interruption.last_words("record", "what was recorded is kept")
with scratch.directory() as place:
    (place / "file").write_text("x")
    try:
        send({name!r})
    except BaseException:
        print("an interrupt was raised in code that did not ask for it")
print("it went on")
"""
    )
    assert (finished.returncode, finished.stdout) == (255, "")
    assert finished.stderr == f"interrupted by {name}: what was recorded is kept\n"
    assert list(tmp_path.iterdir()) == []


def test_what_must_be_unwound_is_asked_once_and_unwound_to_its_end() -> None:
    finished = ended(
        """
import asyncio
async def main():
    try:
        send("SIGTERM")
        await asyncio.sleep(3600)
    finally:
        send("SIGINT", "SIGHUP")
        await asyncio.sleep(0.01)
        print("healed")
try:
    interruptible.run(main())
except interruption.Interrupted:
    print(interruption.described())
interruption.finish()
sys.exit(255)
"""
    )
    assert finished.stdout == "healed\ninterrupted by SIGTERM: no verdict was reached\n"
    assert finished.returncode == 255
    assert finished.stderr.splitlines() == [
        "still tidying up, which further signals do not cut short; kill -9 would, and leave the rest"
    ]


def test_what_failed_while_it_was_unwound_is_the_cause() -> None:
    finished = ended(
        """
import asyncio
async def main():
    try:
        send("SIGTERM")
        await asyncio.sleep(3600)
    finally:
        raise ValueError("the engine does not answer")
try:
    interruptible.run(main())
except interruption.Interrupted as error:
    print(repr(error.__cause__))
"""
    )
    assert finished.stdout == "ValueError('the engine does not answer')\n", finished.stderr


def test_further_signals_do_not_cut_short_what_is_given_back(tmp_path: Path) -> None:
    finished = ended(
        f"""
def slowly():
    send("SIGTERM", "SIGINT", "SIGHUP")
    Path({str(tmp_path)!r}, "given back").touch()
resources.hold(slowly)
send("SIGINT")
"""
    )
    assert finished.returncode == 255
    assert (tmp_path / "given back").exists()


def test_threads_that_fail_for_lack_of_what_was_released_print_nothing() -> None:
    finished = ended(
        """
import threading
gone, missed = threading.Event(), threading.Event()
def complain():
    gone.wait()
    print("Traceback: it is gone", file=sys.stderr, flush=True)
    missed.set()
threading.Thread(target=complain, daemon=True).start()
def give_back():
    gone.set()
    missed.wait()
resources.hold(give_back)
send("SIGTERM")
"""
    )
    assert (finished.returncode, finished.stderr) == (255, "interrupted by SIGTERM: no verdict was reached\n")


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_a_signal_that_was_ignored_from_the_start_stays_ignored(name: str) -> None:
    finished = ended(f"send({name!r})\nprint('it went on')", before=f"signal.signal(signal.{name}, signal.SIG_IGN)")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "it went on\n", "")


def test_sigterm_ends_also_what_ignores_ctrl_c() -> None:
    finished = ended("send('SIGTERM')\nprint('it went on')", before="signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert (finished.returncode, finished.stdout) == (255, "")


def test_a_signal_after_the_end_is_too_late() -> None:
    finished = ended("interruption.finish()\nsend('SIGINT', 'SIGTERM', 'SIGHUP')\nsys.exit(1)")
    assert (finished.returncode, finished.stderr) == (1, "")


def test_in_a_program_that_imports_stormproof_ctrl_c_is_raised_when_the_run_has_been_unwound() -> None:
    program = """
import asyncio, os, signal
from harness.environments import interruptible
async def main():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(0.01)
        print("healed")
for _ in range(2):
    try:
        interruptible.run(main())
    except KeyboardInterrupt:
        print("interrupted")
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    code = f"import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{program}"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert finished.stdout == "healed\ninterrupted\n" * 2 + "True\n", finished.stderr
