"""What a node's program looks like from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from system_under_test.runtime.host import Host


class Main(Protocol):
    """An entry point of a node, named as `package.module:function`.

    It runs until it is cancelled (a clean stop: flush, close, mark the shutdown as clean) or killed.
    `config` is plain JSON data; a bad one raises ValueError that says which setting is wrong.
    """

    async def __call__(self, host: Host, config: Mapping[str, Any]) -> None: ...
