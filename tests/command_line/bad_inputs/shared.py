"""What lies in the folder in which every row is typed, and a run directory that is sound but for what a row changes."""

from __future__ import annotations

import os
from pathlib import Path

from tests.command_line.bad_inputs.rows import Content

WRITTEN = "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n"
EITHER = (
    "{:process 0, :type :invoke, :f :add, :value 1}\n{:process 0, :type :ok, :f :add, :value 1}\n"
    "{:process 0, :type :invoke, :f :read, :value nil}\n{:process 0, :type :ok, :f :read, :value nil}\n"
)
SOUND_SUITE = '[defaults]\nsystem = "rocketmq"\nworkload = "log"\n'
SOUND_SCENARIO = {
    "system": "rocketmq",
    "workload": "log",
    "nemesis": [],
    "environment": "simulated",
    "settings": {},
    "mutant": None,
    "concurrency": 10,
    "rate": 100.0,
    "time_limit_s": 60.0,
    "recovery_s": 20.0,
    "liveness_s": 0.0,
    "max_outage_s": 0.0,
    "seed": 0,
    "versions": {},
    "facts": {"reasons": [], "panics": {}, "storm_from_ns": 0, "final_from_ns": 1, "complete": True},
}
FILES: dict[str, Content] = {
    "good.edn": WRITTEN,
    "either.edn": EITHER,
    "good.toml": SOUND_SUITE,
    "certificate": '{"model": "register", "failed_cas": "ignored"}\n{"key": "", "order": [0]}\n',
    "text": "hello\n",
    "binary": b"\x00\x01\xff",
    "empty": "",
    "empty.parquet": "",
    "noise.parquet": "PAR1 noise PAR1",
    "noise.arrows": b"\x00\x01",
    "short.arrows": b"\xff\xff\xff\xff\x10",
    "empty.arrows": "",
}


def lay_out(folder: Path) -> None:
    """Beside the files: a folder, a link to itself, and one to nothing."""
    for name, content in FILES.items():
        write(folder / name, content)
    (folder / "folder").mkdir()
    os.symlink("loop", folder / "loop")
    os.symlink("nothing", folder / "dangling")


def write(path: Path, content: Content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
