"""What a node says through its shell is taken at its word only where it is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from harness.environments.remote.launch import Launch
from harness.environments.remote.machines import NodeMachine
from harness.environments.remote.node import RemoteNode
from harness.environments.remote.shell import Finished
from harness.errors import HarnessError
from harness.program import Command, DebianPackages, PythonProgram

PROGRAM = Command(argv=("true",), image=DebianPackages(("one",)))


class Answering:
    """`Shell`: each command is answered by the next of these outputs."""

    def __init__(self, *outputs: bytes) -> None:
        self._outputs = list(outputs)

    def run(self, argv: Sequence[str]) -> Finished:
        return Finished(exit_code=0, output=self._outputs.pop(0), errors=b"")

    def put(self, files: Mapping[str, bytes]) -> None:
        raise AssertionError("nothing is to be written")

    def fetch(self, path: str) -> bytes:
        raise AssertionError("nothing is to be fetched")


def node(*outputs: bytes) -> RemoteNode:
    return RemoteNode(
        name="n1",
        address="10.0.0.1",
        place=NodeMachine(shell=Answering(*outputs)),
        program=PROGRAM,
        launch=Launch(argv=("true",), files={}),
    )


def test_what_a_verb_changed_is_told() -> None:
    assert node(b'{"before": "running", "after": "paused"}').pause() == "n1 (running → paused)"


@pytest.mark.parametrize("outputs", [(b"",), (b"Killed\n",)], ids=["nothing", "no JSON"])
def test_what_is_no_answer_fails_in_one_line_that_shows_it(outputs: tuple[bytes, ...]) -> None:
    with pytest.raises(HarnessError, match=r"^pause in n1 should answer with JSON, and answered '"):
        node(*outputs).pause()


def test_what_it_runs_from_its_next_boot_on_is_replaced_only_by_what_its_image_holds() -> None:
    one = node()
    assert one.replace_program(PROGRAM, {"n1": "10.0.0.1"}) == ""
    other = Command(argv=("false", "${address}"), image=DebianPackages(("one",)))
    assert one.replace_program(other, {"n1": "10.0.0.1"}) == "n1"
    assert one.launch.argv == ("false", "10.0.0.1")
    with pytest.raises(HarnessError, match="n1 cannot be another program in its container: that needs another image"):
        one.replace_program(PythonProgram(main="beacon:main"), {"n1": "10.0.0.1"})
