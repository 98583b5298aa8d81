"""How a node's program is started where it runs, and what of it comes home."""

from __future__ import annotations

import json

from harness.environments.remote import agent
from harness.environments.remote.launch import CONFIG, launch_of
from harness.program import Command, DebianPackages, PythonProgram


def test_a_python_program_gets_its_directory_and_its_config() -> None:
    launch = launch_of("n1", PythonProgram(main="a.b:c", config={"port": 1}), {"n1": "10.0.0.1"})
    assert launch.argv[-2:] == ("a.b:c", CONFIG)
    assert json.loads(launch.files[CONFIG]) == {"name": "n1", "data": f"{agent.NODE}/data", "config": {"port": 1}}
    assert launch.logs == ""


def test_a_directory_of_either_kind_of_program_comes_home() -> None:
    ours = launch_of("n1", PythonProgram(main="a.b:c", logs="store"), {"n1": "10.0.0.1"})
    command = Command(argv=("true",), image=DebianPackages(("one",)), logs="${home}/store")
    theirs = launch_of("n1", command, {"n1": "10.0.0.1"})
    assert ours.logs == f"{agent.DISK}/store"
    assert theirs.logs == f"{agent.NODE}/store"
