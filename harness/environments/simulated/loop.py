"""An asyncio event loop in virtual time: it runs what is ready, then jumps to the next timer.

The same program takes the same path in every process: ready callbacks run in the order they were scheduled,
timers of the same moment in the order they were set, and tasks hash by their birth, so that even the sets
inside `asyncio.TaskGroup` and `asyncio.wait` are walked in one order.

Every callback belongs to the process in whose context it was scheduled (`OWNER`). Before it runs, its owner
is asked: what belongs to a paused process waits, what belongs to a dead one never runs. Callbacks without a
context are the kernel's: packets, disks, timers of the simulator itself.

Two mistakes end the simulation with a HarnessError instead of hanging it: nothing left to do while the main
task waits (deadlock), and too many callbacks without time moving on (livelock).
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import Context, ContextVar, copy_context
from heapq import heapify, heappop, heappush
from typing import Any, Final, Protocol, TypeVar, cast
from weakref import WeakSet

from harness.errors import HarnessError
from harness.lifetime.interruption import Interrupted

T = TypeVar("T")

NANOSECONDS: Final = 1_000_000_000
END_TIMEOUT_S: Final = 60.0
LIVELOCK_CALLBACKS: Final = 2_000_000
_COMPACT_ABOVE: Final = 1024

logger = logging.getLogger(__name__)


class Owner(Protocol):
    """What the loop asks of the process that a callback belongs to."""

    name: str
    alive: bool
    """False once nothing of it may run again."""
    runs: bool
    """True while callbacks may run at once; otherwise `admit` decides."""

    def admit(self, handle: Handle) -> bool:
        """Whether to run this callback now; if not, the owner keeps it or drops it."""

    def crash(self, error: BaseException) -> None:
        """A callback of this process raised."""


OWNER: ContextVar[Owner | None] = ContextVar("OWNER", default=None)


class Handle:
    """A scheduled callback; `cancel` makes it do nothing."""

    __slots__ = ("args", "callback", "context", "delayed")

    def __init__(self, callback: Callable[..., object] | None, args: tuple[Any, ...], context: Context | None) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.delayed = False

    def cancel(self) -> None:
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        return self.callback is None


class TimerHandle(Handle):
    """A callback at a moment; a cancelled one is taken out of the heap when many have gathered."""

    __slots__ = ("__weakref__", "_loop", "when_ns")

    def __init__(
        self,
        loop: VirtualTimeLoop,
        when_ns: int,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.delayed = False
        self._loop = loop
        self.when_ns = when_ns

    def when(self) -> float:
        return self.when_ns / NANOSECONDS

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self.args = ()
            self._loop.timer_cancelled()


OnSet = Callable[[TimerHandle], object]
"""Is told the timer that has been set."""


class Deadline:
    """`asyncio.timeout_at` at half the cost: at its moment what is inside is cancelled, and TimeoutError raised."""

    __slots__ = ("_cancelling", "_loop", "_on_set", "_struck", "_task", "_timer", "_when_ns")

    def __init__(self, loop: VirtualTimeLoop, when_ns: int, on_set: OnSet | None = None) -> None:
        self._loop = loop
        self._when_ns = when_ns
        self._on_set = on_set

    def __enter__(self) -> None:
        loop = self._loop
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a deadline belongs to a task")
        self._task = task
        self._cancelling = task.cancelling()
        self._struck = False
        self._timer: Handle
        if self._when_ns > loop.now_ns:
            self._timer = timer = loop.timer_at(self._when_ns, self._strike)
            if self._on_set is not None:
                self._on_set(timer)
        else:
            self._timer = loop.call_soon(self._strike)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._timer.cancel()
        # If the task was cancelled otherwise meanwhile, that must not look like a time-out.
        if self._struck and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _strike(self) -> None:
        self._struck = True
        self._task.cancel()


class BirthOrderedTask(asyncio.Task[T]):
    """A task that hashes by its birth: a set of tasks is walked in the same order in every process."""

    __slots__ = ("birth", "owner")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        loop: VirtualTimeLoop,
        name: str | None,
        context: Context | None,
    ) -> None:
        self.birth = loop.next_birth()
        self.owner = OWNER.get() if context is None else context.get(OWNER)
        super().__init__(coroutine, loop=loop, name=name or f"task-{self.birth}", context=context)

    def __hash__(self) -> int:
        return self.birth


class VirtualTimeLoop(asyncio.AbstractEventLoop):
    """Only what nodes and the harness need: callbacks, timers, futures, tasks. No sockets, threads or signals."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[int, int, Handle]] = []
        self._sequence = 0
        self._births = 0
        self._cancelled_timers = 0
        self._closed = False
        self._running = False
        self._graveyard: list[asyncio.Task[Any]] = []
        self._tasks_of: dict[Owner, WeakSet[asyncio.Task[Any]]] = {}
        """Of each process that lives."""
        self._callback_error: BaseException | None = None
        self._interrupted = False
        self.callbacks_run = 0

    # What runs ------------------------------------------------------------------------------------------------

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end in virtual time and return its result."""
        if events._get_running_loop() is not None:
            main.close()
            raise HarnessError("a simulation cannot be started from within a running event loop")
        task = self.create_task(main, name="main")
        events._set_running_loop(self)
        self._running = True
        try:
            try:
                self._run_until(task)
            finally:
                self._end_the_rest()
        finally:
            self._running = False
            events._set_running_loop(None)
        return task.result()

    def _end_the_rest(self) -> None:
        """Cancel what the harness left running, the main task after an interrupt included, and let it finish."""
        rest = [task for task in asyncio.all_tasks(self) if isinstance(task, BirthOrderedTask) and task.owner is None]
        if rest:
            for task in sorted(rest, key=hash):
                task.cancel()
            self._run_until(self.create_task(asyncio.wait(rest, timeout=END_TIMEOUT_S), name="end"))

    def run_forever(self) -> None:
        raise HarnessError("a simulation ends with its main task: use VirtualTimeLoop.run")

    def run_until_complete(self, future: Any) -> Any:
        return self.run(future)

    def _run_until(self, main: asyncio.Task[Any]) -> None:
        ready = self._ready
        popleft = ready.popleft
        owner_of = OWNER
        while not main.done():
            if self._interrupted:
                self._interrupted = False
                raise Interrupted
            if not ready:
                self._advance(main)
            budget = LIVELOCK_CALLBACKS
            while ready:
                budget -= 1
                if budget == 0:
                    raise HarnessError(self._livelock())
                handle = popleft()
                callback = handle.callback
                if callback is None:
                    continue
                context = handle.context
                if context is None:
                    callback(*handle.args)
                    continue
                owner = context.get(owner_of)
                if owner is not None and not owner.runs and not owner.admit(handle):
                    continue
                try:
                    context.run(callback, *handle.args)
                except KeyboardInterrupt:
                    raise
                except BaseException as raised:
                    if owner is None:
                        raise
                    owner.crash(raised)
            self.callbacks_run += LIVELOCK_CALLBACKS - budget
            if self._callback_error is not None:
                failure, self._callback_error = self._callback_error, None
                raise failure

    def _advance(self, main: asyncio.Task[Any]) -> None:
        """Jump to the next timer."""
        timers = self._timers
        ready = self._ready
        while timers:
            now, _, handle = heappop(timers)
            if handle.callback is not None:
                break
            self._cancelled_timers -= 1
        else:
            raise HarnessError(self._deadlock(main))
        self.now_ns = now
        ready.append(handle)
        while timers and timers[0][0] == now:
            ready.append(heappop(timers)[2])

    def interrupt(self) -> None:
        """End the simulation between two of its moments: called by a signal, which must not raise in what runs."""
        self._interrupted = True

    def fail(self, error: BaseException) -> None:
        """End the simulation with this error once the current moment is over."""
        if self._callback_error is None:
            self._callback_error = error

    # Scheduling -----------------------------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        when_ns = self.now_ns + max(0, round(delay * NANOSECONDS))
        return self._set_timer(when_ns, callback, args, copy_context() if context is None else context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> TimerHandle:
        when_ns = max(self.now_ns, round(when * NANOSECONDS))
        return self._set_timer(when_ns, callback, args, copy_context() if context is None else context)

    def timer_at(self, when_ns: int, callback: Callable[..., object], *args: Any) -> TimerHandle:
        """Run a callback of the current process at a moment yet to come."""
        return self._set_timer(when_ns, callback, args, copy_context())

    def kernel_at(self, when_ns: int, callback: Callable[..., object], *args: Any) -> TimerHandle:
        """Run a callback of the simulator itself at a moment; belongs to no process and never waits for one."""
        return self._set_timer(when_ns, callback, args, None)

    def kernel_soon(self, callback: Callable[..., object], *args: Any) -> None:
        """Run a callback of the simulator itself after what is ready now."""
        self._ready.append(Handle(callback, args, None))

    def kernel_next(self, callback: Callable[..., object], *args: Any) -> None:
        """Run a callback of the simulator itself once the callback that runs now is over, before all others."""
        self._ready.appendleft(Handle(callback, args, None))

    def later(self, handle: Handle, when_ns: int) -> None:
        """Run a callback that was ready at a later moment instead: its process is slow."""
        self._sequence += 1
        heappush(self._timers, (when_ns, self._sequence, handle))

    def soon(self, handle: Handle) -> None:
        """Make a callback ready that its process had kept back."""
        self._ready.append(handle)

    def _set_timer(
        self, when_ns: int, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> TimerHandle:
        self._sequence = sequence = self._sequence + 1
        handle = TimerHandle(self, when_ns, callback, args, context)
        heappush(self._timers, (when_ns, sequence, handle))
        return handle

    def move(self, moments: Mapping[TimerHandle, int]) -> None:
        """Let timers that were set run at other moments."""
        for timer, when_ns in moments.items():
            timer.when_ns = when_ns
        self._timers = [(moments.get(timer, when_ns), number, timer) for when_ns, number, timer in self._timers]  # type: ignore[call-overload]
        heapify(self._timers)

    def timer_cancelled(self) -> None:
        self._cancelled_timers += 1
        if self._cancelled_timers > _COMPACT_ABOVE and self._cancelled_timers * 2 > len(self._timers):
            self._timers = [timer for timer in self._timers if timer[2].callback is not None]
            heapify(self._timers)
            self._cancelled_timers = 0

    # Time, futures, tasks -------------------------------------------------------------------------------------

    def time(self) -> float:
        return self.now_ns / NANOSECONDS

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def next_birth(self) -> int:
        self._births += 1
        return self._births

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = BirthOrderedTask(coro, loop=self, name=name, context=context)
        owner = task.owner
        if owner is not None:
            if owner.alive:
                self._tasks_of.setdefault(owner, WeakSet()).add(task)
            else:
                self._graveyard.append(task)
        return task

    async def sleep_until(self, when_ns: int, on_set: OnSet | None = None) -> None:
        """Wait for a moment of virtual time."""
        waiter = self.create_future()
        timer = self.kernel_at(when_ns, _wake, waiter)
        if on_set is not None:
            on_set(timer)
        try:
            await waiter
        finally:
            timer.cancel()

    def bury(self, owner: Owner) -> None:
        """Keep a dead process's tasks until the end: were one collected, its `finally` would run after its death."""
        tasks = self._tasks_of.pop(owner, ())
        self._graveyard.extend(sorted((task for task in tasks if not task.done()), key=hash))

    # The rest of an event loop --------------------------------------------------------------------------------

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    get_debug = bool  # False: asked by each future, so by nothing that is interpreted

    def set_debug(self, enabled: bool) -> None:
        pass

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """asyncio reports here what nobody waited for; it comes from garbage collection, so it decides nothing."""
        logger.debug("%s: %r", context.get("message"), context.get("exception"))

    def close(self) -> None:
        """Throw away what is left. The caller has marked every process dead, so nothing it does counts."""
        if self._closed:
            return
        self._graveyard.extend(sorted(asyncio.all_tasks(self), key=hash))
        self._closed = True
        self._ready.clear()
        self._timers.clear()
        with warnings.catch_warnings():
            # A process that died between making a coroutine and running it never awaited it.
            warnings.filterwarnings("ignore", r"coroutine .* was never awaited", RuntimeWarning)
            for task in self._graveyard:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    _close_coroutine(cast("Coroutine[Any, Any, Any]", task.get_coro()))
            self._graveyard.clear()
        self._ready.clear()

    def _deadlock(self, main: asyncio.Task[Any]) -> str:
        waiting = sorted(asyncio.all_tasks(self), key=hash)
        lines = [f"  {_where(task)}" for task in waiting if task is not main]
        return "\n".join(
            [
                f"nothing is left to happen at {self.now_ns / NANOSECONDS:.6f} s, but the main task waits "
                f"at {_where(main)}; also waiting:",
                *lines[:50],
            ]
        )

    def _livelock(self) -> str:
        names = [repr(handle.callback) for handle in list(self._ready)[:5]]
        return (
            f"{LIVELOCK_CALLBACKS} callbacks ran at {self.now_ns / NANOSECONDS:.6f} s without time moving on; "
            f"next are {', '.join(names)}"
        )


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    place = f"{frames[-1].f_code.co_filename}:{frames[-1].f_lineno}" if frames else "its start"
    return f"{task.get_name()} at {place}"


def _close_coroutine(coroutine: Coroutine[Any, Any, Any]) -> None:
    for _ in range(100):  # one that awaits in its `finally` has to be cancelled again
        try:
            coroutine.close()
        except RuntimeError:
            continue
        except BaseException:  # noqa: BLE001  # the last words of something already dead
            return
        return
