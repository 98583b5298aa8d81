"""Docker: one network a run, one container a node, everything found again by its label."""

from __future__ import annotations

from harness.environments.containers.engine import engine
from harness.environments.containers.environment import ClientHosts, DockerEnvironment
from harness.environments.containers.image import node_image
from harness.environments.containers.leftovers import cleanup

__all__ = ["ClientHosts", "DockerEnvironment", "cleanup", "engine", "node_image"]
