"""What slaves of configured masters say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_parted(status: Mapping[str, Any]) -> bool:
    """Whether this slave has nothing in common with its master any more, by its administrators' answer."""
    return bool(status.get("haClientRuntimeInfo", {}).get("state") == "SUSPEND")
