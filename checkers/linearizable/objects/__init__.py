"""The kinds of objects that histories can be judged by: a module each, with its model and, if it has one, its
decider."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.linearizable.model import Decided, FailedCas, Model
from checkers.linearizable.objects import (
    append_log,
    counter,
    echo,
    fenced_lock,
    fifo_queue,
    leased_lock,
    map,
    multi_register,
    mutex,
    priority_queue,
    register,
    set,
    stack,
    unordered_queue,
)
from checkers.linearizable.objects.register import cas_register

__all__ = ["MODELS", "cas_register", "decided"]

MODELS: Mapping[str, Model] = {
    model.name: model
    for model in (
        register.MODEL,
        cas_register(FailedCas.IGNORED),
        multi_register.MODEL,
        map.MODEL,
        set.MODEL,
        mutex.MODEL,
        fenced_lock.MODEL,
        leased_lock.MODEL,
        counter.MODEL,
        fifo_queue.MODEL,
        unordered_queue.MODEL,
        priority_queue.MODEL,
        stack.MODEL,
        append_log.MODEL,
        echo.MODEL,
    )
}


def decided(model: Model) -> Decided | None:
    """How objects of this model are decided without a search; None if it differs from the model that has its name
    here."""
    shipped = MODELS.get(model.name)
    return shipped.decided if shipped is not None and shipped.apply is model.apply else None
