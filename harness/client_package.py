"""Clients of systems that others made come from packages that are installed only where somebody wants them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

from harness.errors import UsageError


def require_package(package: str, *, system: str) -> None:
    """Raises UsageError where the package of a system's clients is not installed; the extra has the system's name."""
    try:
        distribution(package)
    except PackageNotFoundError:
        raise UsageError(
            f"clients of {system} need the package {package}, which is not installed: "
            f"pip install 'stormproof[{system}]'"
        ) from None
