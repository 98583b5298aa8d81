"""SSH: nodes on machines that somebody else made, which an inventory names."""

from __future__ import annotations

from harness.environments.ssh.leftovers import cleanup_machines

__all__ = ["cleanup_machines"]
