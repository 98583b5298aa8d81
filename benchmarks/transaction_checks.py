"""How long a whole check of transactions takes, from Parquet: dependencies, cycles, deciders.

    python benchmarks/transaction_checks.py [--transactions 1000000] [--lists] [--model strict-serializable]
        [--level serializable] [--sessions 20] [--keys 1000] [--violation write_skew] [--assume wfr-keys]
        [--master local[2] | --in-process] [--history FILE]

The history is of a made-up store (`transaction_stores`), ten live keys that are retired after 32 writes unless
--keys says how many there are for ever; or --history, one that was written before.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from log_check import make_engine
from measured import measured
from transaction_stores import RETIRED, Keys, Level, Store, Values, Violation, write

from checkers.api.plan import CheckRequest
from checkers.history_batches import history_rows
from checkers.transactions.checker import ListAppend, RwRegister
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.model.lattice import model_named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--lists", action="store_true", help="instead of registers")
    parser.add_argument("--model", type=model_named, default="strict-serializable")
    parser.add_argument("--level", choices=[level.name.lower() for level in Level], default="serializable")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--violation", choices=[violation.name.lower() for violation in Violation])
    parser.add_argument("--assume", type=Assumption, action="append", default=[])
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--history", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    checker: ListAppend | RwRegister = RwRegister(model=arguments.model, assume=frozenset(arguments.assume))
    if arguments.lists:
        checker = ListAppend(model=arguments.model)
    store = Store(
        level=Level[arguments.level.upper()],
        values=Values.LISTS if arguments.lists else Values.REGISTERS,
        transactions=arguments.transactions,
        sessions=arguments.sessions,
        keys=RETIRED if arguments.keys is None else Keys(alive=arguments.keys),
        violation=None if arguments.violation is None else Violation[arguments.violation.upper()],
        seed=arguments.seed,
    )
    with tempfile.TemporaryDirectory() as directory:
        path = arguments.history or Path(directory) / "history.parquet"
        if arguments.history is None:
            write(store, path)
        transactions = history_rows(path) // 2
        print(f"{transactions:,} transactions, {path.stat().st_size >> 20} MiB of Parquet", flush=True)
        with measured() as whole:
            engine = make_engine(arguments.master, arguments.in_process)
            with measured() as check:
                result = checker.check(CheckRequest(history=path), engine)
    counts = {name: summary.count for name, summary in result.anomalies.items()}
    print(f"{engine.name}: {result.verdict.value} {counts} {dict(result.statistics)}")
    print(f"check: {check}")
    print(f"with the start of the engine: {whole.seconds:.1f} s; {transactions / check.seconds:,.0f} transactions/s")


if __name__ == "__main__":
    main()
