"""A stand-in for a RocketMQ distribution: its scripts, by their names and arguments, start what comes with Stormproof.

It reads the properties files that are written for the real one, knows nothing of the harness, and leaves no events.
"""

from __future__ import annotations

from harness.environments.remote.launch import python_files
from harness.environments.remote.packed import tar_of
from harness.program import PythonProgram
from tests.ssh.machines import Machine

DIRECTORY = "/opt/rocketmq"
KINDS = {"mqnamesrv": "nameserver", "mqcontroller": "controller", "mqbroker": "broker"}
SCRIPT = """#!/bin/sh
cd "$(dirname "$0")/.." && exec env PYTHONPATH=lib python3 start.py {kind} "$@"
"""
START = """import json, os, pathlib, re, sys

kind, option, path = sys.argv[1:]
assert option == "-c", option
home = pathlib.Path(re.search(r"-Duser.home=([^ ]+)", os.environ["JAVA_OPT_EXT"])[1])
lines = pathlib.Path(path).read_text().splitlines()
settings = dict(line.split("=", 1) for line in lines)
# Where it is, as RocketMQ has it: addresses that others are told begin with brokerIP1.
name = settings.get("brokerIP1") or settings.get("controllerDLegerSelfId") or "nameserver"
properties = home / "properties"
properties.write_text("\\n".join(line for line in lines if not line.startswith("brokerIP")))
config = home / "node.json"
config.write_text(json.dumps({"name": name, "data": str(home / "rocketmq"), "config": str(properties)}))
(home / "logs").mkdir(exist_ok=True)
log = os.open(home / "logs" / "rocketmq.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(log, 1)
program = "system_under_test.rocketmq.node:" + kind
os.execvp("python3", ["python3", "-m", "system_under_test.runtime.real", program, str(config)])
"""


def install(machine: Machine) -> None:
    """Put it into its directory, unless it is there."""
    if "start.py" in machine.sees("ls", DIRECTORY):
        return
    library = python_files(PythonProgram(main="system_under_test.rocketmq.node:broker"))
    files = {f"{DIRECTORY}/lib/{path}": data for path, data in library.items()}
    files |= {f"{DIRECTORY}/bin/{name}": SCRIPT.format(kind=kind).encode() for name, kind in KINDS.items()}
    machine.container.put_archive("/", tar_of({**files, f"{DIRECTORY}/start.py": START.encode()}, mode=0o755))
