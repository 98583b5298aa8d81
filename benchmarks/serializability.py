"""How long it takes to decide serializability and snapshot isolation of transactions that are in memory.

    python benchmarks/serializability.py [--transactions 10000 100000] [--model serializable …] [--lag 100]
                                         [--sessions 20] [--keys 100] [--indefinite 0.01] [--lists] [--planted]
                                         [--give-up-after 60]

The histories are those of a store that keeps the model (see transaction_stores): over 1,000 keys, or as many as are
asked for, and over ten at a time that are retired after 32 writes each. A store that lags keeps no realtime order.
Unless something is planted there is an order, which is what takes the time. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import resource
import time

from transaction_stores import RETIRED, Keys, Level, Store, Values, Violation, committed

from checkers.search_budget import Effort, searching_until
from checkers.transactions.orders.events import Isolation
from checkers.transactions.orders.total_order import MODELS, decided

PLANTED = {Isolation.SERIALIZABLE: Violation.WRITE_SKEW, Isolation.SNAPSHOT: Violation.LOST_UPDATE}
LEVELS = {Isolation.SERIALIZABLE: Level.SERIALIZABLE, Isolation.SNAPSHOT: Level.SNAPSHOT}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--model", choices=MODELS, nargs="+", default=list(MODELS))
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--keys", type=int, default=1_000, help="that are never retired")
    parser.add_argument("--give-up-after", type=float, metavar="SECONDS")
    parser.add_argument("--lag", type=int, default=0, help="commits that a snapshot may be behind")
    parser.add_argument("--indefinite", type=float, default=0.0)
    parser.add_argument("--lists", action="store_true", help="lists instead of registers")
    parser.add_argument("--planted", action="store_true", help="with one violation of the model")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for transactions in arguments.transactions:
        kept = {f"{arguments.keys:,} keys": Keys(alive=arguments.keys), "10 keys, retired": RETIRED}
        for name, keys in kept.items():
            for model in arguments.model:
                isolation = MODELS[model][0]
                histories = [
                    committed(
                        Store(
                            level=LEVELS[isolation],
                            values=Values.LISTS if arguments.lists else Values.REGISTERS,
                            transactions=size,
                            sessions=arguments.sessions,
                            keys=keys,
                            lag=arguments.lag,
                            indefinite=arguments.indefinite,
                            violation=PLANTED[isolation] if arguments.planted else None,
                            seed=arguments.seed,
                        )
                    )
                    for size in (1_000, transactions)
                ]
                # The first one loads what numba has compiled.
                decided(histories[0], model)
                begun = time.process_time()
                with searching_until(Effort(give_up_after_s=arguments.give_up_after).until):
                    decision = decided(histories[1], model)
                taken = time.process_time() - begun
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
                steps = f", a proof of {len(decision.proof.steps)} steps" if decision.proof else ""
                if decision.established:
                    known = decision.established
                    steps = (
                        f" ({known.bound.value}; {known.transactions:,} transactions left, {known.choices:,} choices, "
                        f"{known.orders} orders tried)"
                    )
                print(
                    f"{model}, {transactions} transactions, {name}: {decision.verdict.value}{steps}, "
                    f"{taken:.2f} s, at most {memory} MiB so far",
                    flush=True,
                )


if __name__ == "__main__":
    main()
