"""docs/your-own-system.md: its commands are typed in an empty folder, and what it promises of them is compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command_line.installation import ROOT, environment_with, installed_from

PAGE = (ROOT / "docs" / "your-own-system.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(sh docker|sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"\s+# exit code (\d+)(?:: (VALID|INVALID|UNKNOWN))?$")
MADE_KNOWN = "pip install -e "


@dataclass
class Typed:
    """A command of the page, with all that it promises."""

    command: str
    code: int
    verdict: str
    needs_docker: bool
    lines: tuple[str, ...] = ()


def typed() -> Iterator[Typed]:
    last: Typed | None = None
    for kind, block in BLOCK.findall(PAGE):
        if kind == "text":
            assert last is not None
            last.lines = tuple(block.splitlines())
            continue
        for command in commands(block):
            promised = PROMISE.search(command)
            if last is not None:
                yield last
            last = Typed(
                command=PROMISE.sub("", command),
                code=int(promised[1]) if promised else 0,
                verdict=(promised[2] or "") if promised else "",
                needs_docker=kind == "sh docker",
            )
    assert last is not None
    yield last


def commands(block: str) -> Iterator[str]:
    """Each line is one; a text that is given to a command ends with END."""
    held: list[str] = []
    for line in block.splitlines():
        held.append(line)
        if "<<'END'" not in held[0] or line == "END":
            yield "\n".join(held)
            held = []
    assert not held


def made_known(command: str, folder: Path) -> None:
    """Instead of pip, which would change the environment of this test: its metadata, where Python looks for it."""
    installed_from(folder / command.removeprefix(MADE_KNOWN), folder / "site")


def type_in(folder: Path, one: Typed) -> None:
    """Raises AssertionError where anything is not as promised."""
    if one.command.startswith(MADE_KNOWN):
        return made_known(one.command, folder)
    environment = environment_with(folder / "site", folder / "shelf", folder / "basket")
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    ran = subprocess.run(
        ["bash", "-c", one.command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    said = f"{one.command}\nended with {ran.returncode} and said\n{ran.stdout}{ran.stderr}"
    assert ran.returncode == one.code, said
    if one.verdict:
        assert re.search(rf"^verdict   {one.verdict}\b", ran.stdout, re.MULTILINE), said
    for line in one.lines:
        pattern = "^" + ".*".join(map(re.escape, line.split("…"))) + "$"
        assert re.search(pattern, ran.stdout, re.MULTILINE), f"{line!r} is missing:\n{said}"


@pytest.mark.gate
@pytest.mark.slow
def test_what_is_typed_ends_and_says_as_the_page_promises(tmp_path: Path) -> None:
    for one in typed():
        if not one.needs_docker:
            type_in(tmp_path, one)


@pytest.mark.docker
@pytest.mark.thorough
def test_in_containers_as_well(tmp_path: Path) -> None:
    for one in typed():
        if one.needs_docker or one.command.startswith(("stormproof new", MADE_KNOWN)):
            type_in(tmp_path, one)


def test_the_page_promises_every_verdict_by_its_exit_code() -> None:
    promised = {(one.code, one.verdict) for one in typed() if one.verdict}
    assert promised == {(0, "VALID"), (1, "INVALID")}
    assert len(list(typed())) >= 15


@pytest.mark.parametrize(
    ("command", "code", "verdict", "line"),
    [
        ("false", 0, "", ""),
        ("echo 'verdict   INVALID'", 0, "VALID", ""),
        ("echo 'verdict   VALID'", 0, "VALID", "a … line"),
    ],
)
def test_a_promise_that_is_not_kept_is_noticed(
    tmp_path: Path, command: str, code: int, verdict: str, line: str
) -> None:
    one = Typed(command=command, code=code, verdict=verdict, needs_docker=False, lines=(line,) if line else ())
    with pytest.raises(AssertionError):
        type_in(tmp_path, one)
