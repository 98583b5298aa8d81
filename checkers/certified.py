"""Which history a certificate is of, so that it can be found later."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CertifiedHistory:
    """The file that was checked, as it was recorded, whatever format that is."""

    name: str
    """Its path, as it was named when it was certified."""
    sha256: str
    """Of its bytes, in hexadecimal."""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "sha256": self.sha256}


def fingerprint(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
