"""A node's logs come home: out of its container, into the run's directory, on the harness's clock."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import docker

from harness.environments.docker import inside
from harness.environments.docker.engine import speaking


def bring_home(container: Any, node: str, directory: Path, *, zero_ns: int) -> None:
    """Write `node.log` and `events.jsonl` of the node into `directory`, which is made unless it is there.

    `zero_ns`: what CLOCK_MONOTONIC was in the container when the harness's clock was 0. Raises HarnessError, OSError.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "node.log").write_bytes(_fetch(container, node, inside.LOG))
    with (directory / "events.jsonl").open("w", encoding="utf-8") as file:
        for line in _fetch(container, node, f"{inside.NODE}/data/events.jsonl").decode(errors="replace").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # torn by a kill
            event["time"] -= zero_ns
            file.write(json.dumps(event) + "\n")


def _fetch(container: Any, node: str, path: str) -> bytes:
    """A file out of the container; empty where there is none."""
    with speaking(f"fetching {path} from {node}"):
        try:
            chunks, _ = container.get_archive(path)
            packed = io.BytesIO(b"".join(chunks))
        except docker.errors.NotFound:
            return b""
    with tarfile.open(fileobj=packed) as archive:
        file = archive.extractfile(archive.getmembers()[0])
        return b"" if file is None else file.read()
