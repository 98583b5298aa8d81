"""The only loop that touches clients and the clock: asks a generator what to do, has it done, records what came of it.

Every thread is one long-lived task that carries out one operation at a time; the loop hands operations to
free threads and takes completions back, in the order in which they came. Rows are recorded by the loop alone, with
the time of the timeline, which it never lets run back.

What a completion is recorded as:
- what the client returned, in the terms of the invocation (process, f and time are not the client's to change);
- `OperationError`: fail or info, as the table in `harness.errors` says;
- no answer within the time-out: info `client-timeout`; the client is closed at once;
- opening the client failed or took too long: fail `connect-failed`, for nothing was sent; the process stays, and
  the next operation tries again;
- HarnessError of the nemesis: nothing, and the test ends with it, for where no fault can be done or undone any more,
  what follows says nothing;
- any other exception: info `client-crashed` and a `ClientCrash` in the result, for that is a mistake of ours.

After info the thread's client is closed and its next operation runs as a new process (old number plus the
concurrency) on a new client. The nemesis is client and process -1 throughout, and always completes with info.

Operations are bounded by their time-outs (opening a client by another one), threads by the concurrency, crashes kept
by `CRASHES_KEPT`. Cancelling leaves open operations open; clients are closed in any case, within `CLOSE_TIMEOUT_S`.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.client import Client
from harness.environments.environment import Timeline
from harness.errors import CLIENT_CRASHED, CLIENT_TIMEOUT, CONNECT_FAILED, ErrorCode, HarnessError, OperationError
from harness.generator import LOG, PENDING, SLEEP, Context, Generator, GeneratorLike, as_generator, quiet_until
from harness.operation import NEMESIS, Operation

CLOSE_TIMEOUT_S = 2.0
NEMESIS_TIMEOUT_S = 120.0
CRASHES_KEPT = 100
_DUE_NS = 1_000
"""Operations due within a microsecond are due now: sleeping that long is lost in rounding."""


@dataclass(frozen=True, kw_only=True)
class ClientCrash:
    """A client (or the nemesis) raised what it must not raise."""

    operation: Operation
    error: str
    trace: str

    def __str__(self) -> str:
        who = "nemesis" if self.operation.process == NEMESIS else f"client of process {self.operation.process}"
        return f"{who} crashed in {self.operation.f}: {self.error}"


@dataclass(frozen=True, kw_only=True)
class Interpreted:
    """How interpreting ended. The operations themselves went to `record`."""

    operations: int
    """Invocations recorded."""
    crashes: tuple[ClientCrash, ...]
    """The first CRASHES_KEPT mistakes of clients; a run with any of them is no proof of anything."""
    next_process: int
    """A first process for more operations of the same test, above all that were used."""


async def run_operations(
    generator: GeneratorLike,
    *,
    client_factory: Callable[[int], Client],
    nemesis: Client | None,
    timeline: Timeline,
    record: Callable[[Operation], object],
    concurrency: int,
    operation_timeout_s: float,
    nemesis_timeout_s: float = NEMESIS_TIMEOUT_S,
    first_process: int = 0,
    show: Callable[[str], object] = lambda message: None,
) -> Interpreted:
    """Run a generator to its end, and wait for what is open then.

    `client_factory(process)` makes an unopened client; it is opened before its first operation. `show` gets
    the messages of `log`. Raises HarnessError if the generator makes no sense, and what generator or `record` raise.
    """
    loop = _Loop(
        generator=as_generator(generator),
        context=Context.start(
            concurrency=concurrency, nemesis=nemesis is not None, first_process=first_process, time=timeline.now_ns()
        ),
        timeline=timeline,
        record=record,
        show=show,
    )
    threads = [_Thread(loop=loop, factory=client_factory, timeout_s=operation_timeout_s) for _ in range(concurrency)]
    if nemesis is not None:
        threads.append(_Thread(loop=loop, factory=lambda process: nemesis, timeout_s=nemesis_timeout_s))
    tasks = [asyncio.create_task(thread.work(), name=f"thread {number}") for number, thread in enumerate(threads)]
    for task in tasks:
        task.add_done_callback(loop.thread_ended)
    try:
        await loop.run(threads)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return Interpreted(
        operations=loop.operations,
        crashes=tuple(loop.crashes),
        next_process=(max(loop.context.processes) // concurrency + 1) * concurrency,
    )


class _Done(NamedTuple):
    thread: int
    completion: Operation
    slept: bool = False
    """It was no operation but a sleep, which the history does not know."""


@dataclass(kw_only=True)
class _Loop:
    generator: Generator
    context: Context
    timeline: Timeline
    record: Callable[[Operation], object]
    show: Callable[[str], object]
    operations: int = 0
    open: int = 0
    done: deque[_Done] = field(default_factory=deque)
    crashes: list[ClientCrash] = field(default_factory=list)
    _quiet_until: int = 0
    """Until when the loop sleeps whatever is completed; 0 where it does not."""
    _heard_ns: int = 0
    """When the generator last heard of an event."""
    _wake: asyncio.Future[None] | None = None
    _broken: BaseException | None = None

    async def run(self, threads: list[_Thread]) -> None:
        while True:
            self._tell_time()
            while self.done:
                self._complete(self.done.popleft())
            due = quiet_until(self.generator, self.context)
            if due > self.context.time + _DUE_NS:
                self._quiet_until = due
                await self._something_done(within_s=(due - self.context.time) / 1e9)
                self._quiet_until = 0
                continue
            # It is asked as of when it was due: were each wait's lateness added to the next, the rate would sink.
            emission = self.generator.op(self.context.at(due) if due > self._heard_ns else self.context)
            if emission is None:
                if not self.open:
                    return
                await self._something_done()
                continue
            operation, following = emission
            if operation is PENDING:
                if not self.open:
                    raise HarnessError(
                        "the generator waits although nothing is open, so it would wait for ever "
                        f"(for a thread that does not exist, perhaps): {self.generator!r:.500}"
                    )
                self.generator = following
                await self._something_done()
                continue
            if operation.time > self.context.time + _DUE_NS:
                await self._something_done(within_s=(operation.time - self.context.time) / 1e9)
                if self.done:
                    # What was completed may bring something sooner; where only time has passed, nothing else is due.
                    continue
                self._tell_time()
            if operation.f == LOG and operation.type == "info":
                self.generator = following
                self.show(str((operation.value or {}).get("message", "")))
                # Endless messages must not keep everybody else from running.
                await self.timeline.sleep(0)
            else:
                self.generator = following
                self._invoke(operation, threads)

    def finished(self, done: _Done) -> None:
        """A thread has a completion."""
        if self._quiet_until:
            # The loop sleeps, and need not be woken for what changes nothing of when it has to ask.
            self._tell_time()
            self._complete(done)
            if quiet_until(self.generator, self.context) < self._quiet_until:
                self._wake_up()
        else:
            self.done.append(done)
            self._wake_up()

    def thread_ended(self, task: asyncio.Task[None]) -> None:
        """A thread ended, which it does by cancellation only, unless there is a mistake in it."""
        self._broken = HarnessError(f"{task.get_name()} was cancelled") if task.cancelled() else task.exception()
        self._wake_up()

    def crashed(self, operation: Operation, error: Exception) -> None:
        if len(self.crashes) < CRASHES_KEPT:
            trace = "".join(traceback.format_exception(error))
            self.crashes.append(ClientCrash(operation=operation, error=f"{type(error).__name__}: {error}", trace=trace))

    def _tell_time(self) -> None:
        now = self.timeline.now_ns()
        if now > self.context.time:
            self.context = self.context.at(now)

    def _invoke(self, operation: Operation, threads: list[_Thread]) -> None:
        context = self.context
        thread = context.thread_of(operation.process)
        if not context.is_free(thread) or context.processes[thread] != operation.process:
            raise HarnessError(f"the generator gave {operation} to a process that is not free")
        process, type_, f, value, key, _, _, node, _ = operation
        operation = Operation(process, type_, f, value, key, context.time, None, node)
        self.context = context = context.busy(thread)
        if type_ == "invoke":
            self.record(operation)
            self.operations += 1
        elif f != SLEEP:
            raise HarnessError(f"the generator gave {operation}, which is neither an invocation nor a sleep")
        self.open += 1
        self._heard_ns = context.time
        self.generator = self.generator.update(context, operation)
        threads[thread].hand(operation, thread)

    def _complete(self, done: _Done) -> None:
        thread, completion, slept = done
        process, type_, f, value, key, _, error, node, _ = completion
        time = self.context.time
        completion = Operation(process, type_, f, value, key, time, error, node)
        context = self.context.freed(thread)
        self.open -= 1
        if not slept:
            self.record(completion)
            if type_ == "info":
                context = context.retired(thread)
        self.context = context
        self._heard_ns = time
        self.generator = self.generator.update(context, completion)

    async def _something_done(self, within_s: float | None = None) -> None:
        """Wait for a completion, at most so long. Without a bound operations are open, whose time-outs bound it."""
        if not self.done and self._broken is None:
            running = asyncio.get_running_loop()
            self._wake = running.create_future()
            timer = None if within_s is None else running.call_later(within_s, self._wake_up)
            try:
                await self._wake
            finally:
                self._wake = None
                if timer is not None:
                    timer.cancel()
        if self._broken is not None:
            raise self._broken

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


@dataclass(kw_only=True)
class _Thread:
    """Carries out operations one by one; a client for each process that it plays."""

    loop: _Loop
    factory: Callable[[int], Client]
    timeout_s: float
    _handed: Operation | None = None
    _last: Operation | None = None
    _number: int = 0
    _idle: asyncio.Future[None] | None = None
    _client: Client | None = None

    def hand(self, operation: Operation, number: int) -> None:
        self._handed = operation
        self._number = number
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    async def work(self) -> None:
        """For ever, until cancelled."""
        running = asyncio.get_running_loop()
        try:
            while True:
                if self._handed is None:
                    self._idle = running.create_future()
                    await self._idle
                    self._idle = None
                operation, self._handed = self._handed, None
                assert operation is not None
                self._last = operation
                if operation.type != "invoke":
                    await self.loop.timeline.sleep((operation.value or {}).get("seconds", 0.0))
                    self.loop.finished(_Done(self._number, operation, slept=True))
                    continue
                completion = await self._carry_out(operation)
                self.loop.finished(_Done(self._number, completion))
                if completion.type == "info" and operation.process != NEMESIS:
                    await self._close()
        finally:
            await self._close()

    async def _carry_out(self, operation: Operation) -> Operation:
        """The completion of an invocation, come what may."""
        failure = None if self._client is not None else await self._open(operation)
        return failure if failure is not None else await self._ask(operation)

    async def _open(self, operation: Operation) -> Operation | None:
        """Open a client for the operation's process; its completion if that failed, for then nothing was sent."""
        self._client = self.factory(operation.process)
        try:
            await self.loop.timeline.within(self.timeout_s, self._client.open())
            return None
        except (OperationError, OSError) as error:
            node = error.node if isinstance(error, OperationError) else None
        except Exception as error:  # noqa: BLE001 - whatever a client raises, the test goes on, and the result tells
            self.loop.crashed(operation, error)
            node = None
        await self._close()
        return _failed(operation, CONNECT_FAILED, node)

    async def _ask(self, operation: Operation) -> Operation:
        assert self._client is not None
        try:
            completion = await self.loop.timeline.within(self.timeout_s, self._client.invoke(operation))
        except OperationError as error:
            return _failed(operation, error.error, error.node)
        except TimeoutError:
            return _failed(operation, CLIENT_TIMEOUT, None)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self.loop.crashed(operation, RuntimeError("the client cancelled its own operation"))
            return _failed(operation, CLIENT_CRASHED, None)
        except Exception as error:
            if operation.process == NEMESIS and isinstance(error, HarnessError):
                raise
            self.loop.crashed(operation, error)
            return _failed(operation, CLIENT_CRASHED, None)
        if completion.type == "invoke" or completion.f != operation.f:
            self.loop.crashed(operation, ValueError(f"expected a completion of {operation.f}, got {completion}"))
            return _failed(operation, CLIENT_CRASHED, None)
        process, _, f, _, key, _, _, _, _ = operation
        if process == NEMESIS:
            return completion._replace(process=process, type="info")
        return Operation(
            process, completion.type, f, completion.value, completion.key or key, -1, completion.error, completion.node
        )

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        try:
            await self.loop.timeline.within(CLOSE_TIMEOUT_S, client.close())
        except (OperationError, OSError):
            # It is given up either way, and what it has sent is answered for already.
            return
        except Exception as error:  # noqa: BLE001 - whatever a client raises, the test goes on, and the result tells
            assert self._last is not None
            self.loop.crashed(self._last, error)


def _failed(operation: Operation, error: ErrorCode, node: str | None) -> Operation:
    completion = "info" if operation.process == NEMESIS else error.completion
    return operation._replace(type=completion, error=error.code, node=node)
