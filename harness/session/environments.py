"""The environments that come with the harness, as entry points name them."""

from __future__ import annotations

from harness.environments.docker.kind import DOCKER as docker
from harness.environments.simulated.kind import SIMULATED as simulated

__all__ = ["docker", "simulated"]
