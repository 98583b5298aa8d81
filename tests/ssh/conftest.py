"""Machines for a session: that takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.environments.docker import engine
from tests.ssh.machines import Rack, rack

# The beacons are programs of one file each, found by name where they lie, on machines as well.
sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

NAMES = ("m1", "m2", "m3", "m4", "m5", "m6")


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Six of them; each test leaves them as they were made, but for the sources that are kept."""
    with engine() as client, rack(client, NAMES, tmp_path_factory.mktemp("rack")) as made:
        yield made
