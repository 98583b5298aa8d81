"""What faults may ask of a system, as it is set: those that ask for more are refused before anything starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.administration import ADMINISTER
from harness.environments.impairment import MisdirectedWrites
from harness.errors import UsageError
from harness.membership import KINDS as MEMBERSHIP
from harness.system import Declaration
from nemesis.administration import Administer
from nemesis.asking import ASKING
from nemesis.impair import LINK_VERBS
from nemesis.membership import Leave
from nemesis.package import Package
from nemesis.periodic import Beat
from nemesis.schedule_file import Written
from nemesis.shape import Shape
from nemesis.target import Nodes, Target
from nemesis.vocabulary import CLIENTS, Vocabulary

OF_CLIENTS = frozenset(("partition", "pause", *(verb.of.kind for verb in LINK_VERBS.values())))
"""Kinds of faults that can strike clients."""


def require_able(package: Any, system: str, declared: Declaration, vocabulary: Vocabulary) -> None:
    """Raises UsageError where the package, sentence or schedule lets nodes go that this system cannot let go, has
    administrators do what it does not declare, or either at a moment when there is no time for it."""
    if package.fault == MisdirectedWrites.kind and isinstance(package, Package) and not package.shapes:
        raise UsageError(
            f"nemesis {package.name!r} is for systems that declare which of their nodes would notice "
            f"(Declaration.verifies_reads), which {system}, as it is set, does not; 'disk-damage' harms disks in other "
            "ways, and a sentence such as 'misdirect writes of all every 10 for 5' is asked of any system"
        )
    kinds = set(package.fault.split("+"))
    if kinds.isdisjoint(ASKING):
        return
    if ADMINISTER in kinds and not declared.acts:
        raise UsageError(
            f"nemesis {package.name!r} has administrators act while the storm blows, and {system}, as it is set, "
            "declares no acts; choose other faults"
        )
    if not kinds.isdisjoint(MEMBERSHIP) and not declared.elastic:
        raise UsageError(
            f"nemesis {package.name!r} lets nodes leave the cluster and come back, which {system} cannot do, as it is "
            "set; 'kill' and 'restarts' take nodes away for a while, 'disk-damage' takes their disks as well"
        )
    for shape, is_at_a_point in _shapes(package):
        of_shape = set(shape.kind.split("+"))
        if not of_shape.isdisjoint(ASKING):
            _require_alone(shape, is_at_a_point)
        if not of_shape.isdisjoint(MEMBERSHIP):
            _require_in_reach(shape, system, declared, vocabulary)


def is_able(shape: Shape, declared: Declaration, vocabulary: Vocabulary) -> bool:
    """Whether a system that declares this does what the shape asks of it; true of one that asks nothing."""
    if isinstance(shape, Administer):
        return shape.act in declared.acts
    return not isinstance(shape, Leave) or _is_in_reach(shape, declared, vocabulary)


def strikes_clients(package: Any) -> bool:
    """Whether any of its shapes may be aimed at clients."""
    return any(CLIENTS in str(shape).split() for shape, _ in _shapes(package))


def require_of_clients(package: Any) -> None:
    """Raises UsageError for what can be done to nodes and not to clients."""
    for shape, _ in _shapes(package):
        wrong = CLIENTS in str(shape).split() and not OF_CLIENTS.issuperset(shape.kind.split("+"))
        if wrong:
            raise UsageError(
                f"'{shape}': clients are no nodes; they are cut off, paused, and their links are impaired, as in "
                f"'isolate one of {CLIENTS}' and 'pause one of {CLIENTS}'"
            )


def _shapes(package: Any) -> Iterable[tuple[Shape, bool]]:
    """With whether each strikes when a point is reached."""
    if isinstance(package, Beat):
        return [(package.shape, package.trigger is not None)]
    if isinstance(package, Written):
        return [(entry.shape, entry.trigger is not None) for entry in package.entries]
    return [(shape, False) for _, shape in package.shapes]


def _require_alone(shape: Shape, is_at_a_point: bool) -> None:
    """As the grammar does, for shapes that nobody wrote down."""
    if is_at_a_point or not isinstance(shape, Leave | Administer):
        raise UsageError(
            f"'{shape}' asks the system, which takes its time: it is joined with no other shape and strikes at no point"
        )


def _require_in_reach(shape: Shape, system: str, declared: Declaration, vocabulary: Vocabulary) -> None:
    assert isinstance(shape, Leave)
    if not _is_in_reach(shape, declared, vocabulary):
        raise UsageError(
            f"'{shape}': of {system}, as it is set, only nodes of {', '.join(declared.elastic)} can leave the cluster "
            f"and come back, as in '{shape.kind} one of {declared.elastic[0]}'"
        )


def _is_in_reach(shape: Leave, declared: Declaration, vocabulary: Vocabulary) -> bool:
    elastic = {node for group in declared.elastic for node in vocabulary.groups[group]}
    reach = _reach(shape.target, declared, vocabulary)
    return bool(reach) and elastic.issuperset(reach)


def _reach(target: Target, declared: Declaration, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The nodes that the target may pick; none where that is not declared."""
    if isinstance(target, Nodes):
        return target.names
    text = str(target)
    for quantifier in ("one of ", "minority of ", "majority of "):
        text = text.removeprefix(quantifier)
    return vocabulary.groups.get(declared.roles.get(text, text), ())
