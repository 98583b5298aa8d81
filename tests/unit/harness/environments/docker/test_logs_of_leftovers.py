"""Two clean-ups at the same time: the logs that the other one brings home are no failure of this one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from harness.environments.docker import leftovers
from harness.environments.docker.engine import LABEL_LOGS, LABEL_NODE, LABEL_START
from harness.environments.leftover import Cleaned
from harness.errors import HarnessError


@dataclass
class LeftContainer:
    """A container whose logs cannot be fetched, and what the engine says of it when it is asked again."""

    labels: dict[str, str]
    status: str = "exited"
    is_gone: bool = False
    client: None = None

    def reload(self) -> None:
        if self.is_gone:
            raise docker.errors.NotFound("no such container")


@pytest.mark.parametrize(
    ("state", "failures"), [({}, 1), ({"is_gone": True}, 0), ({"status": "removing"}, 0), ({"status": "dead"}, 0)]
)
def test_logs_of_a_container_that_another_clean_up_removes_are_no_failure_of_this_one(
    state: dict[str, Any], failures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise HarnessError("the engine knows nothing of its layer")

    monkeypatch.setattr(leftovers, "bring_home", fail)
    monkeypatch.setattr(leftovers, "_clock_ahead_ns", lambda container: 0)
    cleaned = Cleaned()
    labels = {LABEL_NODE: "p1", LABEL_LOGS: str(tmp_path), LABEL_START: "5"}
    leftovers._save_logs(LeftContainer(labels, **state), cleaned)
    assert len(cleaned.failed) == failures
    assert cleaned.brought_home == []
