"""Histories that other checkers read are judged, by what they say: nothing of realtime."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line.answers import Stormproof

LONG_FORK = "w(0,1,0,0)\nw(1,2,1,1)\nr(0,1,2,2)\nr(1,0,2,2)\nr(0,0,3,3)\nr(1,2,3,3)\n"
STALE_BY_REALTIME = "[a:=1]\n[a:=2]\n---\n[a==1]\n[b==?]\n"
LOST_IN_A_SESSION = "w 0 1\n-----\nw 0 2\n-----\nr 0 1\n"
LOG = b"S" + (7).to_bytes(8, "big")
LOG += b"R" + b"".join(number.to_bytes(8, "big") for number in (3, 5, 1, 0)) + b"C" + (7).to_bytes(8, "big")


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (LONG_FORK, (), 1),
        (LONG_FORK, ("--workload", "rw-register", "--consistency-model", "snapshot-isolation"), 1),
        (LONG_FORK, ("--workload", "rw-register", "--consistency-model", "parallel-snapshot-isolation"), 0),
        (STALE_BY_REALTIME, (), 0),
        (LOST_IN_A_SESSION, (), 1),
        (LOST_IN_A_SESSION, ("--workload", "rw-register", "--consistency-model", "serializable"), 0),
    ],
)
def test_sessions_are_judged_as_the_model_that_is_demanded(
    stormproof: Stormproof, text: str, options: tuple[str, ...], code: int
) -> None:
    Path("h").write_text(text)
    answer = stormproof("check", "h", "--engine", "inprocess", "--json", *options)
    assert answer.code == code, answer.out
    as_what = "" if options else "--workload rw-register --consistency-model strong-session-serializable"
    assert json.loads(answer.out).get("judged_as", "") == as_what


def test_a_read_of_what_nobody_wrote_is_found_in_a_directory_of_logs(stormproof: Stormproof) -> None:
    Path("logs").mkdir()
    Path("logs/T0.log").write_bytes(LOG)
    answer = stormproof("check", "logs", "--engine", "inprocess")
    assert answer.code == 1
    assert "garbage-read" in answer.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--workload", "set"), "h is a history of transactions on registers in PolySI's and Plume's text, which is"),
        (("--model", "register"), "which is judged with --workload rw-register"),
        (
            ("--workload", "rw-register", "--consistency-model", "strict-serializable"),
            "says nothing of when transactions took place: strict-serializable cannot be judged; say another",
        ),
    ],
)
def test_what_they_cannot_be_judged_as_is_refused(stormproof: Stormproof, options: tuple[str, ...], says: str) -> None:
    Path("h").write_text(LONG_FORK)
    answer = stormproof("check", "h", *options)
    assert answer.code == 254
    assert says in answer.err


def test_a_broken_one_is_refused_with_its_place(stormproof: Stormproof) -> None:
    Path("h").write_text("w(0,1,0,0)\nw(0,1\n")
    answer = stormproof("check", "h")
    assert answer.code == 254
    assert "h is no history in PolySI's and Plume's text: byte 11: a line must be w(key,value," in answer.err
