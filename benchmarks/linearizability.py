"""How long the search for an order takes: one compare-and-set register with few values, and registers of etcd.

    python benchmarks/linearizability.py [--operations 1000 10000] [--clients 20] [--indefinite 0.05] [--stale]
    python benchmarks/linearizability.py --etcd FOLDER        logs as Jepsen's etcd test wrote them

The history is made up, and the same for the same seed: an atomic register, clients that are always busy, each operation
taking effect at a random moment between its begin and its end. So it is linearizable, and values repeat all the time,
which rules out everything faster than a search. A stale read near its end, if asked for, makes it invalid. Processor
seconds.
"""

from __future__ import annotations

import argparse
import heapq
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

from checkers.linearizable.model import FailedCas
from checkers.linearizable.objects.register import cas_register
from checkers.linearizable.search.decision import LINEARIZABLE, NOT_LINEARIZABLE, UNDECIDED, decide
from checkers.linearizable.search.problem import Row, recorded

VALUES = 5
LIMIT = 20_000_000
NAMES = {LINEARIZABLE: "valid", NOT_LINEARIZABLE: "invalid", UNDECIDED: "unknown"}
LOG_LINE = re.compile(r"(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.*)")


def cas_register_rows(operations: int, clients: int, indefinite: float, stale: bool, seed: int) -> list[Row]:
    """Rows of a history, in order."""
    rng = random.Random(seed)
    moments: list[tuple[float, int, str]] = [(rng.random(), client, "begin") for client in range(clients)]
    heapq.heapify(moments)
    rows: list[Row] = []
    value: int | None = None
    begun = 0
    process = list(range(clients))
    current: list[tuple[str, object, str, object]] = [("", None, "", None)] * clients
    while moments:
        now, client, what = heapq.heappop(moments)
        f, argument, fate, result = current[client]
        if what == "begin":
            if begun == operations:
                continue
            begun += 1
            f = rng.choice(("read", "write", "cas"))
            argument = {
                "read": None,
                "write": rng.randrange(VALUES),
                "cas": (rng.randrange(VALUES), rng.randrange(VALUES)),
            }[f]
            end = now + rng.expovariate(1.0)
            rows.append(Row(process[client], "invoke", f, argument))
            current[client] = (f, argument, "ok", None)
            heapq.heappush(moments, (rng.uniform(now, end), client, "effect"))
            heapq.heappush(moments, (end, client, "end"))
        elif what == "effect":
            result = argument
            if f == "read":
                result = value
                if stale and begun > operations * 0.9 and value is not None:
                    result, stale = VALUES, False
            elif f == "write":
                assert isinstance(argument, int)
                value = argument
            else:
                assert isinstance(argument, tuple)
                if value == argument[0]:
                    value = argument[1]
                else:
                    fate = "fail"
            current[client] = (f, argument, fate, result)
        else:
            if rng.random() < indefinite:
                fate = "info"
            rows.append(Row(process[client], fate, f, result if fate == "ok" else argument))
            process[client] += clients if fate == "info" else 0
            heapq.heappush(moments, (now, client, "begin"))
    return rows


def etcd_rows(path: Path) -> Iterator[Row]:
    lives: dict[int, int] = {}
    for line in path.read_text().splitlines():
        match = LOG_LINE.search(line)
        if match is None:
            continue
        client, kind, f = int(match[1]), match[2], match[3]
        numbers = [int(number) for number in re.findall(r"-?\d+", match[4])]
        value = (tuple(numbers) if f == "cas" else numbers[0]) if numbers else None
        yield Row(client * 1_000 + lives.get(client, 0), kind, f, value)
        lives[client] = lives.get(client, 0) + (kind == "info")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--indefinite", type=float, default=0.0)
    parser.add_argument("--failed-cas", choices=[choice.value for choice in FailedCas], default="ignored")
    parser.add_argument("--stale", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--etcd", type=Path)
    arguments = parser.parse_args()
    model = cas_register(FailedCas(arguments.failed_cas))
    decide(recorded(model, cas_register_rows(1_000, 20, 0.01, False, 0)), limit=LIMIT)  # loads what numba has compiled

    if arguments.etcd is not None:
        files = sorted(arguments.etcd.glob("*.log"))
        answer = cas_register(FailedCas.ANSWER)
        began = time.process_time()
        verdicts = [decide(recorded(answer, etcd_rows(file)), limit=LIMIT).outcome for file in files]
        seconds = time.process_time() - began
        valid = verdicts.count(LINEARIZABLE)
        print(f"{len(files)} etcd logs: {valid} valid, {verdicts.count(NOT_LINEARIZABLE)} invalid, {seconds:.3f} s")
        return
    for operations in arguments.operations:
        rows = cas_register_rows(operations, arguments.clients, arguments.indefinite, arguments.stale, arguments.seed)
        began = time.process_time()
        decision = decide(recorded(model, rows), limit=LIMIT)
        seconds = time.process_time() - began
        print(
            f"{operations} operations, {arguments.clients} clients: {NAMES[decision.outcome]}, "
            f"{decision.explored:,} configurations, {seconds:.2f} s"
        )


if __name__ == "__main__":
    main()
