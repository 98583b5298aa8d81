"""Told to end, a run ends: also where it is a background job that ignores Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from harness.cli.main import _terminate


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_sigterm_interrupts_whether_or_not_ctrl_c_is_ignored(handler: Callable[..., Any] | signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _terminate(signal.SIGTERM, None)
    finally:
        signal.signal(signal.SIGINT, before)
