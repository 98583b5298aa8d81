"""Programs of nodes whose tests want the host itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

LENT: dict[str, Any] = {}


async def lend(host: Any, config: Mapping[str, Any]) -> None:
    LENT[host.name] = host
    await asyncio.Event().wait()
