"""Docker: one network a run, one container a node, everything found again by its label."""

from __future__ import annotations

from harness.environments.docker.engine import engine
from harness.environments.docker.environment import ClientHosts, DockerEnvironment
from harness.environments.docker.image import node_images
from harness.environments.docker.leftovers import cleanup

__all__ = ["ClientHosts", "DockerEnvironment", "cleanup", "engine", "node_images"]
