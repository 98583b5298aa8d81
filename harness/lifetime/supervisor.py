"""The guard: starts a command and sees to it that neither it nor any child of it outlives the process that asked.

`supervisor.py OPTIONS COMMAND…`, run as a program of its own with nothing but the standard library. Its standard input
is a pipe whose other end that process holds alone, so that its end, however it comes, is the end of this input; the
command has the same one. Then the command may still end by itself for a while; whatever runs in this session after that
is killed, and directories that were made for it are removed. A command that ends first has its exit code passed on.

OPTIONS is JSON: `grace_s`, how long the command may take to end by itself; `terminate`, whether it is sent SIGTERM
before that; `remove`, directories.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

ROUNDS = 500
ROUND_S = 0.01


def main(arguments: Sequence[str]) -> int:
    options, command = json.loads(arguments[0]), list(arguments[1:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Heard and not followed; a handler, unlike an ignored signal, is not handed down to the command.
        signal.signal(number, lambda *_: None)
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(0, 0)  # only that the other end is gone
    poll.register(ended, select.POLLIN)
    if any(descriptor == 0 for descriptor, _ in poll.poll(0)):
        return _end(options["remove"], 0)
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return _end(options["remove"], 127)
    while process.poll() is None:
        if any(descriptor == 0 for descriptor, _ in poll.poll()):
            break
        os.read(ended, 4096)
    if process.poll() is None:
        if options["terminate"]:
            process.terminate()
        try:
            process.wait(options["grace_s"])
        except subprocess.TimeoutExpired:
            process.kill()
    code = process.wait()
    return _end(options["remove"], 128 - code if code < 0 else code)


def _end(directories: Sequence[str], code: int) -> int:
    for _ in range(ROUNDS):
        others = _session()
        if not others:
            break
        for pid in others:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(ROUND_S)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    return code


def _session() -> list[int]:
    """The other processes of this session. Empty where the kernel does not say (there is no /proc)."""
    mine, me = os.getsid(0), os.getpid()
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not entry.isdigit() or int(entry) == me:
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == mine and fields[0] not in "ZX":
            found.append(int(entry))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
