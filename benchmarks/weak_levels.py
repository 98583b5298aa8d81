"""How long it takes to decide the weak levels, from PL-2 to causal, of transactions that are in memory already.

    python benchmarks/weak_levels.py [--transactions 1000000] [--sessions 20] [--store causal] [--keys live retired]
                                     [--lag 0] [--indefinite 0.01] [--planted] [--each]

The histories are those of `transaction_stores`, on 1,000 registers that live for ever or on ten at a time that are
retired after 32 writes each. All levels at once, as one question; with --each also every level for itself.
"""

from __future__ import annotations

import argparse

import transaction_stores as stores
from measured import measured

from checkers.api.verdict import Verdict
from checkers.transactions.history.committed import Committed
from checkers.transactions.orders.weak.levels import LEVELS, weak_levels

KEYS = {"live": stores.Keys(), "retired": stores.RETIRED}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--store", choices=[level.name.lower() for level in stores.Level], default="causal")
    parser.add_argument("--keys", choices=sorted(KEYS), nargs="+", default=sorted(KEYS))
    parser.add_argument("--lag", type=int, default=0)
    parser.add_argument("--indefinite", type=float, default=0.01)
    parser.add_argument("--planted", action="store_true", help="a cause is missing in the middle")
    parser.add_argument("--each", action="store_true", help="every level for itself, too")
    arguments = parser.parse_args()
    for name in arguments.keys:
        shape = stores.Store(
            level=stores.Level[arguments.store.upper()],
            values=stores.Values.REGISTERS,
            transactions=arguments.transactions,
            sessions=arguments.sessions,
            keys=KEYS[name],
            lag=arguments.lag,
            indefinite=arguments.indefinite,
            violation=stores.Violation.CAUSALITY if arguments.planted else None,
        )
        history = stores.committed(shape)
        decided(history, tuple(LEVELS), f"{name} keys, {len(history):,} transactions, {len(history.key):,} operations")
        for level in LEVELS if arguments.each else ():
            decided(history, (level,), level)


def decided(history: Committed, levels: tuple[str, ...], what: str) -> None:
    with measured() as whole:
        decisions = weak_levels(history, levels)
    forbidden = [name for name, decision in decisions.items() if decision.verdict is Verdict.INVALID]
    print(f"{what}: {', '.join(forbidden) or 'all valid'}; {whole}", flush=True)


if __name__ == "__main__":
    main()
