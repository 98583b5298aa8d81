"""Docker: one network a run, one container a node, everything found again by its label."""

from __future__ import annotations

from harness.environments.docker.containers import docker_environment
from harness.environments.docker.engine import engine
from harness.environments.docker.image import node_images
from harness.environments.docker.leftovers import cleanup

__all__ = ["cleanup", "docker_environment", "engine", "node_images"]
