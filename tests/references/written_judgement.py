"""By what a written history is judged."""

from __future__ import annotations

from checkers.api.evidence import Evidence
from checkers.api.plan import Checker
from checkers.availability import Availability
from checkers.completions import CompletionEchoes
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.history import completions as of_objects
from checkers.linearizable.objects import MODELS
from checkers.log.rows import REPEATS as OF_LOGS
from stormproof.session.check_spec import checker_for
from stormproof.session.registry import names
from stormproof.session.registry import workload as workload_named
from tests.references.history_language import WrittenHistory


def checker_of(written: WrittenHistory) -> Checker:
    if written.checker == "register":
        return Linearizable(MODELS["cas-register"], written.max_configurations)
    if written.checker == "availability":
        return Availability()
    if written.checker == "object":
        return Linearizable(MODELS[written.model], written.max_configurations)
    return checker_for(written.checker, written.options)


def evidence_of(written: WrittenHistory) -> tuple[Evidence, ...]:
    if written.checker in names("workloads"):
        return workload_named(written.checker).evidence
    if written.checker == "availability":
        return ()
    model = MODELS[written.model or "cas-register"]
    return model.evidence(model.initial)


def repeats_of(written: WrittenHistory) -> tuple[CompletionEchoes, ...]:
    if written.checker in names("workloads"):
        return workload_named(written.checker).repeats
    return OF_LOGS if written.checker == "availability" else of_objects.repeats_of(MODELS[written.model])
