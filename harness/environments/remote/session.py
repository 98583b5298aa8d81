"""A test in an environment of machines, to its end: nothing is left on them, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from harness.environments import interruptible
from harness.environments.environment import Environment
from harness.environments.remote.environment import RemoteEnvironment
from harness.errors import HarnessError
from harness.lifetime.interruption import last_words, unwinding

T = TypeVar("T")


def carry_out(
    main: Callable[[Environment], Coroutine[Any, Any, T]], environment: RemoteEnvironment, *, done: str, remedy: str
) -> T:
    """Run it to its end. `done` and `remedy` are for an interrupted run: what has gone, or how to remove the rest."""
    with unwinding(_nothing_more):
        try:
            return interruptible.run(main(environment))
        finally:
            remove(environment, done=done, remedy=remedy)


def _nothing_more() -> None:
    """Interrupted while machines are being released: that goes on to its end."""


def remove(environment: RemoteEnvironment, *, done: str, remedy: str) -> None:
    """Whatever is still there, also where the teardown failed; an interrupted run says what came of it."""
    try:
        environment.remove()
    except HarnessError as error:
        last_words("environment", f"not all of it could be removed ({error}); {remedy}")
        raise
    last_words("environment", f"faults were healed, {done}")
