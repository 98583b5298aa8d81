"""What an anomaly says, for people who have not met it before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """Declared where the anomaly is reported: by its checker, or by the system whose invariant it breaks."""

    says: str
    """One sentence: what was seen."""
    usually: str
    """One sentence: what it usually comes from."""
