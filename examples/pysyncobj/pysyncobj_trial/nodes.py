"""Three nodes: Debian's Python, `serve.py`, and PySyncObj's own files as pip installed them here.

So nodes need no way to a package index, and what is on trial is what was published, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import files
from pathlib import Path
from typing import Any

from stormproof import Command, DebianPackages, Listening, NodeSpec

NODES = ("n1", "n2", "n3")
CLIENT_PORT, RAFT_PORT = 7000, 4321
PLACE = "${home}/trial"
JOURNAL, DUMP = {"journalFile": "${home}/journal"}, {"fullDumpFile": "${home}/dump"}
LIBRARY = "pysyncobj"
TRUE_CLOCK = ("env", "-u", "LD_PRELOAD")
"""Debian's libfaketime 0.9.10 refuses to sleep until a monotonic time (EINVAL), which is how Python sleeps since 3.11.
So the wall clock of these nodes is true, and faults of clocks have no effect; PySyncObj counts with monotonic time."""


def node(name: str, *, reads: str, options: Mapping[str, Any]) -> NodeSpec:
    """`options`: those of PySyncObj's `SyncObjConf`."""
    addresses = {one: f"${{{one}.address}}:{RAFT_PORT}" for one in NODES}
    config = {
        "self": addresses.pop(name),
        "others": list(addresses.values()),
        "reads": reads,
        "options": dict(options),
    }
    command = Command(
        argv=(*TRUE_CLOCK, "python3", f"{PLACE}/serve.py", json.dumps(config)),
        image=DebianPackages(("python3",)),
        files={f"{PLACE}/serve.py": _text(Path(__file__).with_name("serve.py")), **_library()},
        ready=Listening(CLIENT_PORT),
    )
    return NodeSpec(name=name, groups=("servers",), program=command, ports=(CLIENT_PORT,))


def _library() -> Mapping[str, str]:
    """Path in a node -> text."""
    modules = [path for path in files(LIBRARY) or () if path.parts[0] == LIBRARY and path.suffix == ".py"]
    return {f"{PLACE}/{path.as_posix()}": _text(Path(str(path.locate()))) for path in modules}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").replace("${", "$${")
