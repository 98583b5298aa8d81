"""The grammar of shapes: a verb and its targets, in the names of one system.

    TARGET   a node, several (b1+b2), a group, all, a role; one of GROUP, minority of GROUP, majority of GROUP;
             machine of a node, a role, or one of GROUP: with all other nodes that run on the same machine;
             `it`, the node that reached the point at which the fault strikes (`nemesis/trigger.py`)
    PART     the same without all
    GROUP    a group, or all
    NODE     a node, a role, or one of GROUP: of several only one is struck

What impairs links or nodes may say how badly, behind all else: `slow links of b1 delay_ms=120 jitter_ms=30`
(`nemesis/parameters.py`).

    PATTERN  files, below where a node keeps its data, in quotes: 'store/**/*.blk'
    PROCESS  the name of processes, in quotes where it could be read otherwise: 'redis-server', '*zookeeper*'
    COUNT    a whole number, and UNIT: B, kB, MB or GB
    ACT      what administrators of the system do, by the name that it declares

`parse_shape(str(shape).split())` gives an equal shape. What is wrong with words that are none is said by the first word
that cannot stand where it stands, and with it what could.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from harness.bounds import quote
from harness.nearest import nearest
from nemesis import membership, shape
from nemesis.administration import Administer
from nemesis.asking import ASKING
from nemesis.impair import (
    BYTES,
    LINK_VERBS,
    NODE_VERBS,
    PROCESS_VERBS,
    Corrupt,
    Impairing,
    ImpairLinks,
    ImpairLinksOf,
    ImpairNodes,
    StrikeProcesses,
)
from nemesis.links import Between, OneDirection
from nemesis.package import PACKAGES
from nemesis.parameters import BY_ELEMENT, Amount
from nemesis.shape import (
    Apart,
    Bridge,
    ClockShape,
    CutLink,
    CutOneDirection,
    Isolate,
    IsolateWithCompany,
    MajoritiesRing,
    OneWay,
    RandomHalves,
    Shape,
    Together,
)
from nemesis.target import ALL, Group, MachineOf, Majority, Minority, Nodes, One, Role, Target
from nemesis.vocabulary import EVERYBODY, IT, Vocabulary

FEW = 12
"""So many of the words that could stand somewhere are named."""

MOST_CORRECTIONS = 10

T = TypeVar("T")
Words = tuple[str, ...]
Elements = tuple[str, ...]
"""What stands word by word: `TARGET`, `PART` and `GROUP` are one name each, others stand for themselves."""

_QUANTIFIERS: Mapping[str, Callable[[str], Target]] = {"one": One, "minority": Minority, "majority": Majority}
MACHINE = "machine"
ACT = "ACT"
_TARGETS = ("TARGET", "PART", "NODE")
_EXAMPLES: Mapping[str, str] = {"PATTERN": "'**/*'", "PROCESS": "'java'", "COUNT": "1", "UNIT": "MB", ACT: "act"}
_KINDS: Mapping[str, str] = {
    "PATTERN": "pattern of files",
    "PROCESS": "name of processes",
    "COUNT": "whole number",
    "UNIT": "unit",
    ACT: "act",
}
_WRITTEN: Mapping[str, re.Pattern[str]] = {
    "PATTERN": re.compile(r"'[^\s',\[\]#]+'|[^\s',\[\]#]*[*/.?][^\s',\[\]#]*"),
    "PROCESS": re.compile(r"'[^\s',\[\]#]+'|(?!of$)[^\s',\[\]#]+"),
    "COUNT": re.compile(r"[1-9][0-9]{0,8}"),
    "UNIT": re.compile("|".join(BYTES)),
}


@dataclass(frozen=True, slots=True)
class Form:
    """How a kind of shape is written, and what makes it of its targets and groups."""

    text: str
    make: Callable[..., Shape]
    amounts: tuple[Amount, ...] = ()
    """Amounts that may follow, all of them or none."""

    @property
    def whole_text(self) -> str:
        """With what may follow."""
        amounts = " ".join(amount.element for amount in self.amounts)
        return f"{self.text} [{amounts}]" if amounts else self.text

    @property
    def verb(self) -> str:
        """The words before the first target or group; none where the shape begins with one."""
        return " ".join(itertools.takewhile(str.islower, self.text.split()))

    @property
    def kind(self) -> str:
        """Of the faults that its shapes become; the same for all targets."""
        return self.make(*(_EXAMPLES.get(word, ALL) for word in self.text.split() if not word.islower())).kind

    def variants(self) -> Iterator[Elements]:
        """The form with each target in one word, or as a quantifier of a group."""
        choices = [
            ((word,), *((quantifier, "of", "GROUP") for quantifier in _quantifiers(word)), *_machines(word))
            for word in self.text.split()
        ]
        for chosen in itertools.product(*choices):
            elements = tuple(itertools.chain.from_iterable(chosen))
            yield elements
            if self.amounts:
                yield (*elements, *(amount.element for amount in self.amounts))


def _quantifiers(element: str) -> Sequence[str]:
    """Those that can stand there."""
    if element == "NODE":
        return ("one",)
    return tuple(_QUANTIFIERS) if element in _TARGETS else ()


def _machines(element: str) -> Sequence[Elements]:
    """The same for all nodes of a machine."""
    if element not in ("TARGET", "PART"):
        return ()
    return ((MACHINE, "of", "NODE"), (MACHINE, "of", "one", "of", "GROUP"))


def _impairing_links(verb: str) -> Iterator[Form]:
    amounts = LINK_VERBS[verb].amounts
    yield Form(f"{verb} link TARGET to TARGET", lambda left, right: ImpairLinks(verb, Between(left, right)), amounts)
    yield Form(f"{verb} link TARGET to TARGET one way", lambda a, b: ImpairLinks(verb, OneDirection(a, b)), amounts)
    yield Form(f"{verb} links of TARGET", partial(ImpairLinksOf, verb), amounts)


def _corrupt(target: Target, pattern: str, count: str, unit: str) -> Shape:
    return Corrupt(target, pattern.strip("'"), int(count) * BYTES[unit])


def _strike_processes(verb: str, name: str, target: Target) -> Shape:
    return StrikeProcesses(verb, name.strip("'"), target)


FORMS = (
    Form("isolate PART", Isolate),
    Form("isolate PART with one of GROUP", IsolateWithCompany),
    Form("one way around PART", OneWay),
    Form("TARGET apart from TARGET", Apart),
    Form("cut link TARGET to TARGET", CutLink),
    Form("cut link TARGET to TARGET one way", CutOneDirection),
    *(form for verb in LINK_VERBS for form in _impairing_links(verb)),
    Form("random halves", RandomHalves),
    Form("bridge in GROUP", Bridge),
    Form("majorities ring of GROUP", MajoritiesRing),
    Form("kill TARGET", shape.kill),
    Form("restart TARGET", shape.restart),
    Form("upgrade TARGET", shape.upgrade),
    Form("pause TARGET", shape.pause),
    Form("shrink TARGET", membership.shrink),
    Form("wipe NODE", membership.wipe),
    Form("administer ACT", Administer),
    *(
        Form(f"{verb} process PROCESS of TARGET", partial(_strike_processes, verb), of.amounts)
        for verb, of in PROCESS_VERBS.items()
    ),
    Form("power off TARGET", shape.power_off),
    Form("skew clocks of TARGET", ClockShape),
    Form("corrupt TARGET PATTERN one bit in COUNT UNIT", _corrupt),
    *(Form(f"{verb} TARGET", partial(ImpairNodes, verb), of.amounts) for verb, of in NODE_VERBS.items()),
)
VERBS = tuple(dict.fromkeys(form.verb for form in FORMS if form.verb))
_VARIANTS: Mapping[Elements, Form] = {elements: form for form in FORMS for elements in form.variants()}
_WITHOUT_VERB = tuple(elements for elements in _VARIANTS if not elements[0].islower())
_BY_FIRST_WORD: Mapping[str, Sequence[Elements]] = {
    word: tuple(elements for elements in _VARIANTS if elements[0] == word or not elements[0].islower())
    for word in {elements[0] for elements in _VARIANTS if elements[0].islower()}
}
"""The variants that a first word leaves, in their order: few of the many."""


@dataclass(eq=False)
class Mistake(Exception):
    """What is wrong with some words, and the words with that corrected, if it is clear what was meant."""

    what: str
    corrected: Words | None = None


def parse_shapes(words: Words, vocabulary: Vocabulary, *, after: str = "'and'") -> Shape:
    """One shape, or several with `and` between them; `after` says what can follow one. Raises Mistake."""
    parts = _split(words)
    shapes = []
    for number, part in enumerate(parts):
        try:
            shapes.append(parse_shape(part, vocabulary, after=after))
        except Mistake as mistake:
            what = f"shape {number + 1} of {len(parts)}: {mistake.what}" if len(parts) > 1 else mistake.what
            if mistake.corrected is None:
                raise Mistake(what) from None
            others = [*parts[:number], mistake.corrected, *parts[number + 1 :]]
            joined = tuple(word for other in others if other for word in ("and", *other))[1:]
            raise Mistake(what, joined or None) from None
    if len(shapes) == 1:
        return shapes[0]
    for place, one in enumerate(shapes):
        if one.kind in ASKING:
            what = f"'{one}' asks the system, which takes its time: it stands alone, in a sentence of its own"
            raise Mistake(f"shape {place + 1} of {len(shapes)}: {what}", tuple(str(one).split()))
    return Together(tuple(shapes))


def parse_shape(words: Words, vocabulary: Vocabulary, *, after: str = "'and'") -> Shape:
    """Raises Mistake; its corrected words are none where the shape is to be left out."""
    for elements in _begun(words, vocabulary):
        if len(elements) == len(words):
            return _make_shape(_VARIANTS[elements], words, vocabulary)
    raise _mistake(words, vocabulary, after)


def meant(mistake: Mistake, read: Callable[[Words], T]) -> T | None:
    """What the words are with this and all further mistakes corrected; None where that is not clear."""
    words = mistake.corrected
    for _ in range(MOST_CORRECTIONS):
        if words is None:
            return None
        try:
            return read(words)
        except Mistake as further:
            words = further.corrected
    return None


def next_words(words: Words, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The words that can come next in a shape that begins so; `and` where it may end here."""
    begun = _begun(words, vocabulary)
    ended = ("and",) if any(len(elements) == len(words) for elements in begun) else ()
    return (*_list_words(_next_elements(begun, len(words)), vocabulary), *ended)


def may_end_with(word: str, vocabulary: Vocabulary) -> bool:
    """Whether some shape ends with the word."""
    return any(_fits(elements[-1], word, vocabulary) for elements in _VARIANTS)


def _make_shape(form: Form, words: Words, vocabulary: Vocabulary) -> Shape:
    arguments: list[Target | str] = []
    place = 0
    for element in form.text.split():
        word = words[place]
        if element in _TARGETS and word == MACHINE:
            is_one = words[place + 2 : place + 4] == ("one", "of")
            of_it = One(words[place + 4]) if is_one else _named(words[place + 2], vocabulary)
            arguments.append(MachineOf(of_it))
            place += 5 if is_one else 3
            continue
        if element in _TARGETS and word in _QUANTIFIERS:
            arguments.append(_QUANTIFIERS[word](words[place + 2]))
            place += 3
            continue
        if element in _TARGETS:
            arguments.append(_named(word, vocabulary))
        elif element == "GROUP" or element in _EXAMPLES:
            arguments.append(word)
        place += 1
    shape = form.make(*arguments)
    if place == len(words):
        return shape
    assert isinstance(shape, Impairing)
    amounts = zip(form.amounts, words[place:], strict=True)
    return replace(shape, amounts=tuple(amount.value(word) for amount, word in amounts))


def _named(name: str, vocabulary: Vocabulary) -> Target:
    if name in vocabulary.roles or name == IT:
        return Role(name)
    return Group(name) if name in vocabulary.groups else Nodes(tuple(name.split("+")))


def _fits(element: str, word: str, vocabulary: Vocabulary) -> bool:
    if element == "GROUP":
        return word in vocabulary.groups
    if element in BY_ELEMENT:
        return BY_ELEMENT[element].reads(word)
    if element == ACT:
        return word in vocabulary.acts
    if element in _EXAMPLES:
        return _WRITTEN[element].fullmatch(word) is not None
    if element not in _TARGETS:
        return word == element
    if element == "NODE":
        return word in (*vocabulary.roles, *vocabulary.nodes)
    if word in vocabulary.names:
        return element == "TARGET" or word != EVERYBODY
    nodes = word.split("+")
    return len(set(nodes)) == len(nodes) and all(node in vocabulary.nodes for node in nodes)


def _begun(words: Words, vocabulary: Vocabulary) -> list[Elements]:
    """The variants that begin with these words, in their order."""
    possible = _BY_FIRST_WORD.get(words[0], _WITHOUT_VERB) if words else tuple(_VARIANTS)
    return [
        elements
        for elements in possible
        if len(words) <= len(elements) and all(map(lambda e, w: _fits(e, w, vocabulary), elements, words))
    ]


def _split(words: Words) -> list[Words]:
    parts: list[Words] = [()]
    for word in words:
        if word == "and":
            parts.append(())
        else:
            parts[-1] = (*parts[-1], word)
    return parts


def _mistake(words: Words, vocabulary: Vocabulary, after: str) -> Mistake:
    """What is wrong with words that are no shape."""
    if not words:
        return Mistake("no shape stands there", ())
    right = next(count for count in range(len(words), -1, -1) if _begun(words[:count], vocabulary))
    begun, rest = words[:right], words[right:]
    if not begun:
        return _wrong_beginning(words, vocabulary)
    variants = _begun(begun, vocabulary)
    elements = _next_elements(variants, right)
    known = _list_words(elements, vocabulary)
    before, kind = " ".join(begun), _kind(elements)
    if elements == (ACT,) and not known:
        return Mistake(f"nothing can follow '{before}': this system, as it is set, declares no acts of administrators")
    if not rest:
        completed = tuple(_list_words((element,), vocabulary)[0] for element in variants[0][right:])
        return Mistake(f"the {kind} after '{before}' is missing, e.g. {_few(known)}", (*begun, *completed))
    may_end = any(len(variant) == right for variant in variants)
    if may_end and nearest(rest[0], ["and"]):
        return Mistake(f"the word 'and' is misspelt as {quote(rest[0])}", (*begun, "and", *rest[1:]))
    if kind == "target" and "+" in rest[0] and "NODE" not in elements:
        what, several = _wrong_nodes(rest[0], vocabulary.nodes)
        return Mistake(what, (*begun, several, *rest[1:]) if several else None)
    corrected = _corrected(variants, right, rest, vocabulary)
    amounts = [BY_ELEMENT[element] for element in elements if element in BY_ELEMENT]
    if amounts and any(rest[0].startswith(f"{amount.name}=") for amount in amounts):
        amount = amounts[0]
        number = f"{'a whole number' if amount.is_whole else 'a number'} {amount.bounds}"
        number += " or 'all'" if amount.may_be_all else ""
        return Mistake(f"{amount.name} takes {number}, got {quote(rest[0])}", (*begun, amount.example, *rest[1:]))
    if may_end and not corrected:
        return Mistake(f"only {after} can follow '{before}', got {quote(rest[0])}")
    what = f"{quote(rest[0])} is no {kind} that can follow '{before}'; there can be: {_few(known)}"
    return Mistake(what, (*begun, *corrected) if corrected else None)


def _corrected(variants: Sequence[Elements], right: int, rest: Words, vocabulary: Vocabulary) -> Words | None:
    """The rest with its first word corrected: by the nearest word, or by one that was left out before it."""
    elements = _next_elements(variants, right)
    if "NODE" in elements and rest[0] in vocabulary.groups:
        return ("one", "of", *rest)
    near = nearest(rest[0], _list_words(elements, vocabulary), 1)
    if near:
        return (*near, *rest[1:])
    for variant in variants:
        if len(variant) > right + 1 and variant[right].islower() and _fits(variant[right + 1], rest[0], vocabulary):
            return (variant[right], *rest)
    return None


def _wrong_beginning(words: Words, vocabulary: Vocabulary) -> Mistake:
    if words[0] in PACKAGES:
        what = f"'{words[0]}' is a package of faults, which has a pace of its own"
        return Mistake(f"{what}; a sentence begins with: {_few(VERBS)}")
    first = nearest(words[0], _list_words(_next_elements(tuple(_VARIANTS), 0), vocabulary), 1)
    is_target = "+" in words[0] or (first and first[0] in vocabulary.names)
    kind, listed = ("target", _few(vocabulary.names)) if is_target else ("verb", _few(VERBS))
    what = f"the {kind} {quote(words[0])} is unknown; known are: {listed}"
    return Mistake(what, (*first, *words[1:]) if first else None)


def _wrong_nodes(word: str, nodes: Words) -> tuple[str, str | None]:
    """What is wrong with several nodes in one word, and the word corrected."""
    names = word.split("+")
    unknown = next((name for name in names if name not in nodes), None)
    if unknown is None:
        return f"{quote(word)} names a node twice", "+".join(dict.fromkeys(names))
    near = nearest(unknown, nodes, 1)
    what = f"{quote(unknown)} in {quote(word)} is no node; there are: {_few(nodes)}"
    return what, "+".join(near[0] if name == unknown else name for name in names) if near else None


def _next_elements(variants: Sequence[Elements], place: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(elements[place] for elements in variants if len(elements) > place))


def _kind(elements: Sequence[str]) -> str:
    if any(element in _TARGETS for element in elements):
        return "target"
    if any(element in BY_ELEMENT for element in elements):
        return "amount"
    if "GROUP" in elements:
        return "group"
    return next((kind for element, kind in _KINDS.items() if element in elements), "word")


def _list_words(elements: Sequence[str], vocabulary: Vocabulary) -> tuple[str, ...]:
    """The words that the elements can be, but for several nodes in one word."""
    words: list[str] = []
    for element in elements:
        if element == "GROUP":
            words += vocabulary.groups
        elif element == "PART":
            words += (name for name in vocabulary.names if name != EVERYBODY)
        elif element == "NODE":
            words += (*vocabulary.roles, *vocabulary.nodes)
        elif element in BY_ELEMENT:
            words.append(BY_ELEMENT[element].example)
        elif element == ACT:
            words += vocabulary.acts
        elif element == "UNIT":
            words += BYTES
        elif element in _EXAMPLES:
            words.append(_EXAMPLES[element])
        else:
            words += vocabulary.names if element == "TARGET" else (element,)
    return tuple(dict.fromkeys(words))


def _few(words: Sequence[str]) -> str:
    return ", ".join(words[:FEW]) + (", …" if len(words) > FEW else "")
