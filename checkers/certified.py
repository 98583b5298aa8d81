"""The history that a certificate is about, so that it can be found and read again as it was when it was checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CertifiedHistory:
    """The file that was checked, as it was recorded, whatever format that is."""

    name: str
    """Its path, as it was given when it was certified."""
    sha256: str
    """The SHA-256 of its bytes, in hexadecimal."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """Names of functions that its clients use -> our names."""
    by_time: bool = False
    """Whether its rows were read in the order of their times, not in that of the file."""

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"name": self.name, "sha256": self.sha256}
        if self.functions:
            data["functions"] = dict(self.functions)
        if self.by_time:
            data["order"] = "time"
        return data


def fingerprint(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
