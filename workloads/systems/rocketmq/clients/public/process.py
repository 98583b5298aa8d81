"""Where the public client runs: in one process a run, which ends with the run, or with the harness.

It has threads of its own, waits in them, and logs below its home directory: none of that touches the harness's loop or
console, and what it logs stays with the clients' files.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from itertools import count
from pathlib import Path
from typing import Any

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, OUTCOME_UNKNOWN, OperationError, UsageError
from system_under_test.runtime.real import RealHost
from workloads.systems.rocketmq.errors import of_status

PACKAGE, EXTRA = "rocketmq-python-client", "stormproof[grpc-client]"
PROGRAM = Path(__file__).with_name("program.py")
FOLDER = "public-client"
ANSWER_BYTES = 1 << 20
"""How long a line of an answer may be."""


def require_installed() -> None:
    """Raises UsageError where the public client is not installed."""
    try:
        distribution(PACKAGE)
    except PackageNotFoundError:
        raise UsageError(
            f"client=grpc outside of the simulator needs the package {PACKAGE}, which is not installed: "
            f"pip install '{EXTRA}', or leave client=grpc out"
        ) from None


class PublicProcess:
    """Answers requests of several clients side by side, while `run` does."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._started: asyncio.Future[Process] = asyncio.get_running_loop().create_future()
        self._ids = count()
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}

    async def run(self) -> None:
        """Start it, and hand out what it answers until it ends, or this is cancelled: then it is ended."""
        self._home.mkdir(parents=True, exist_ok=True)
        with (self._home / "errors.log").open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", str(PROGRAM)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                env=_environment(self._home),
                limit=ANSWER_BYTES,
                start_new_session=True,
            )
        self._started.set_result(process)
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                answer = json.loads(line)
                self._answer(answer["id"], answer)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            for number in list(self._waiting):
                self._answer(number, {"lost": "the public client's process ended"})

    async def ask(self, client: str, do: str, node: str, **request: Any) -> Any:
        """`node` is the proxy that the client asks. Raises OperationError."""
        stdin = (await asyncio.shield(self._started)).stdin
        assert stdin is not None
        number = next(self._ids)
        self._waiting[number] = future = asyncio.get_running_loop().create_future()
        stdin.write(f"{json.dumps({'id': number, 'client': client, 'do': do, **request})}\n".encode())
        try:
            answer = await future
        finally:
            self._waiting.pop(number, None)
        if "ok" in answer:
            return answer["ok"]
        raise _error(answer, node)

    def _answer(self, number: int, answer: Mapping[str, Any]) -> None:
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(answer)


_running: dict[Path, PublicProcess] = {}
"""Directory of a run's clients -> their process."""


def public_process(host: RealHost) -> PublicProcess:
    """That of the run to which the host belongs; one that is started here ends with the host."""
    directory = host.directory.parent
    if directory not in _running:
        _running[directory] = public = PublicProcess(directory / FOLDER)
        host.spawn(_kept(directory, public), "public client")
    return _running[directory]


async def _kept(directory: Path, public: PublicProcess) -> None:
    try:
        await public.run()
    finally:
        del _running[directory]


def _environment(home: Path) -> Mapping[str, str]:
    """That of this process, but for its home, and for proxies of the web, which gRPC would go by."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**kept, "HOME": str(home)}


def _error(answer: Mapping[str, Any], node: str) -> OperationError:
    if "unsent" in answer:
        return OperationError(CONNECT_FAILED, answer["unsent"], node=node)
    if "status" in answer:
        return OperationError(of_status(answer["status"]), answer["words"], node=node)
    if "rpc" in answer:
        # Whether it was sent before the connection failed, gRPC's codes do not say.
        code = CLIENT_TIMEOUT if answer["rpc"] == "DEADLINE_EXCEEDED" else OUTCOME_UNKNOWN
        return OperationError(code, answer["words"], node=node)
    if "lost" in answer:
        return OperationError(CONNECTION_LOST, answer["lost"], node=node)
    return OperationError(OUTCOME_UNKNOWN, answer["other"], node=node)
