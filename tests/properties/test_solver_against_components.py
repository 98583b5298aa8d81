"""The one solver for orders against what it replaced: components, whose choices a SAT solver makes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from itertools import chain

from transaction_stores import RETIRED, Keys, Level, Store, Values
from transaction_stores import committed as store_committed

from checkers.api.verdict import Verdict
from checkers.transactions.history.committed import Committed
from checkers.transactions.orders import parallel_snapshot, total_order
from checkers.transactions.orders.bounds import DEMANDED
from checkers.transactions.orders.complete_search import CompleteSearch
from checkers.transactions.orders.events import Isolation, chained, events
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.saturation import saturated
from tests.references.orders_by_components.decide import decided_by_components
from tests.references.thousands import thousands
from tests.references.transaction_histories import random_committed

MODELS = {
    **{name: (isolation, kept, OrderKind.TOTAL) for name, (isolation, kept) in total_order.MODELS.items()},
    **{
        model.value: (Isolation.SERIALIZABLE, kept, OrderKind.PER_SITE)
        for model, kept in parallel_snapshot.MODELS.items()
    },
}


def drawn(rng: random.Random) -> Committed:
    keys = rng.choice((0, 3, 8))
    return store_committed(
        Store(
            level=rng.choice(list(Level)),
            values=rng.choice(list(Values)),
            transactions=rng.choice((10, 20, 40)),
            sessions=rng.choice((3, 10)),
            keys=Keys(alive=keys) if keys else RETIRED,
            lag=rng.choice((0, 5, 20)),
            indefinite=rng.choice((0.0, 0.1)),
            seed=rng.randrange(1 << 30),
        )
    )


def agree(histories: Iterable[Committed], rng: random.Random) -> Counter[Verdict]:
    seen: Counter[Verdict] = Counter()
    for committed in histories:
        model = rng.choice(list(MODELS))
        isolation, kept, orders = MODELS[model]
        found = saturated(chained(events(committed, isolation, kept), DEMANDED.cells), orders)
        if found.cyclic:
            continue
        decision = CompleteSearch(found=found, orders=orders, bounds=DEMANDED).decision()
        assert decision.verdict is decided_by_components(found, orders).verdict, (model, committed)
        seen[decision.verdict] += 1
    return seen


def agree_of_both_kinds(seeds: range) -> Counter[Verdict]:
    stores = (drawn(random.Random(seed)) for seed in seeds)
    small = (random_committed(random.Random(seed), most=10) for seed in seeds)
    return agree(chain(stores, small), random.Random(seeds.start))


def test_the_solver_decides_as_components_do() -> None:
    seen = agree_of_both_kinds(range(600))
    assert seen[Verdict.INVALID] > 5, "most of them are refuted by what is forced"


@thousands()
def test_the_solver_decides_many_histories_as_components_do(seeds: range) -> None:
    agree_of_both_kinds(seeds)
