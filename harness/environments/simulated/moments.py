"""`Moments` of the harness: what happens in the simulator is seen, and answered, at the very moment it happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import Context

from harness.environments.simulated.loop import VirtualTimeLoop
from harness.errors import HarnessError

Saw = Callable[[str, str, Mapping[str, object]], None]
Watcher = Callable[[str, str, Mapping[str, int]], None]


class Moments:
    """Callbacks run outside of every process; an error of one ends the simulation, never a node."""

    __slots__ = ("_counts", "_kernel", "_loop", "_on_point", "heeds_points", "values", "watch")

    def __init__(self, loop: VirtualTimeLoop, kernel: Context) -> None:
        self.watch: Saw | None = None
        self.values: Watcher | None = None
        self.heeds_points = False
        """Whether anybody is to be called at points."""
        self._loop = loop
        self._kernel = kernel
        self._counts: dict[str, Counter[str]] = {}
        self._on_point: tuple[Callable[[str, str], None], ...] = ()

    # What the harness asks ------------------------------------------------------------------------------------

    def on_point(self, callback: Callable[[str, str], None]) -> None:
        self._on_point += (callback,)
        self.heeds_points = True

    def after_step(self, callback: Callable[[], None]) -> None:
        self._loop.kernel_next(self._run, callback)

    def at(self, time_ns: int, callback: Callable[[], None]) -> None:
        self._loop.kernel_at(time_ns, self._run, callback)

    def counts(self) -> Mapping[tuple[str, str], int]:
        return {
            (node, point): count for node, of in sorted(self._counts.items()) for point, count in sorted(of.items())
        }

    # What hosts and verbs tell --------------------------------------------------------------------------------

    def counts_of(self, host: str) -> Counter[str]:
        """How often a host reached each point, in all its lives; for the host to count in."""
        return self._counts.setdefault(host, Counter())

    def reached(self, node: str, point: str) -> None:
        for callback in self._on_point:
            self._run(callback, node, point)

    def saw(self, node: str, event: str, fields: Mapping[str, object]) -> None:
        if self.watch is not None:
            self._run(self.watch, node, event, fields)

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        if self.values is not None:
            self._run(self.values, node, point, values)

    def _run(self, callback: Callable[..., object], *args: object) -> None:
        try:
            # A copy each time: what one of them does may lead to another.
            self._kernel.copy().run(callback, *args)
        except HarnessError as error:
            self._loop.fail(error)
        except Exception as error:  # noqa: BLE001  # it is raised in a node's step, which would take it for its own
            self._loop.fail(HarnessError(f"a callback of the harness failed: {type(error).__name__}: {error}"))
