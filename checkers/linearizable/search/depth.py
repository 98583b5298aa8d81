"""A depth-first search for a single order: it lets the first operation that can take effect do so and follows that to
the end, and tries the next one only if that fails. It visits no configuration twice.

    0 invoke write 1, 1 invoke write 2, 2 invoke read, 3 ok read 2, 4 ok write 1, 5 ok write 2

At 3 the read has not taken effect, and does not fit the state, so something has to take effect before it. Of the open
writes, write 1 ends first and is tried first; the read does not fit behind it. So write 2 is tried next, and the read
takes effect. By 4 and 5 both writes have taken effect. Had the read been of 1, the first try would have succeeded.

A configuration is one of `configurations`, without free overwrites, together with the event before which it stands: the
completion of an operation that has not taken effect in it. What is open there depends on the event alone, so to go back
is to undo events. After each choice the rules are those of `decision`: reads take effect as soon as they fit, and of
equal operations the one that ends first does. Most histories that have an order have many, and one of them is found
after a few wrong turns, however many configurations there are side by side. In a history that has none, all are tried.

Source: Wing and Gong, Testing and Verifying Concurrent Objects, JPDC 17 (1993); the cache of configurations is that of
Lowe, Testing for Linearizability, CCPE 29 (2017).
"""

from __future__ import annotations

from typing import NamedTuple

from checkers.kernels.columns import Int64
from checkers.linearizable.search.configurations import (
    PLACED,
    STATE,
    UNREAD,
    Rows,
    add,
    clear,
    copy,
    has,
    put,
    with_room,
)
from checkers.linearizable.search.events import COMPLETED, INVOKED, MAY_HAPPEN, READS, looked_up
from checkers.linearizable.search.progress import SearchInput
from checkers.linearizable.values import NEVER
from harness.compiled import compiled, inlined

FOUND, NOWHERE, ASKS, SPENT, WENT_ON = range(5)
"""How `descend` ended. ASKS: entries of the table of moves are missing. NOWHERE: everything was tried. SPENT: it has
explored as much as it may. WENT_ON: only a step of it ends so, and the search goes on."""

DEPTH, AT, STEPS, EXPLORED = range(4)
"""Places in `DfsState.here`: how many choices are being followed, the event before which the search stands, how many
operations have taken effect, and how many configurations were explored."""

FIRST = -1
"""Stands before all choices. A definite operation is chosen by its end, a kind of indefinite ones as FIRST - 1 -
kind."""


class DfsState(NamedTuple):
    """How far a search is; changed in place. It can go on where it stopped."""

    row: Int64
    """Shape (depth, width): the configuration in which each choice is made."""
    at: Int64
    """By choice: the event before which that configuration stands."""
    choice: Int64
    """By choice: what was tried last, see FIRST."""
    target: Int64
    """By choice: how many of the states that this leads to were tried."""
    steps_before: Int64
    """By choice: how many operations had taken effect before it."""
    early: Int64
    """By choice: how many of these took effect since the event before, without letting the operation that completes
    next do so."""
    step: Int64
    """What took effect, in order: an operation, or -1 - kind for an indefinite one."""
    available: Int64
    """By event OVER: how many of the equal indefinite operations there were, which do not matter any more."""
    first_end: Int64
    """By kind: room for the end of the open operation that ends first."""
    here: Int64
    """Shape (4,): see DEPTH, AT, STEPS and EXPLORED."""
    next: Int64
    """Shape (width,): room for a configuration."""


@compiled
def descend(inputs: SearchInput, dive: DfsState, seen: Rows, most: int, together: int) -> tuple[int, Rows]:
    """Go on until something stops it, or `most` configurations are explored in all. Returns how it ended, and the
    configurations that were met. Before a completion at most `together` operations take effect."""
    here, row = dive.here, dive.next
    if here[DEPTH] == 0:
        copy(dive.row[0], row)
        _back(inputs, dive, 0)
        here[STEPS] = 0
        ended = _forward(inputs, dive)
        if ended != WENT_ON:
            return ended, seen
        seen = _followed(inputs, dive, seen, 0)
    while here[DEPTH] > 0:
        if here[EXPLORED] >= most:
            return SPENT, seen
        top = here[DEPTH] - 1
        _back(inputs, dive, dive.at[top])
        here[STEPS] = dive.steps_before[top]
        ended = _taken(inputs, dive, top)
        if ended == NOWHERE:
            here[DEPTH] -= 1
            continue
        early = dive.early[top] + 1
        if ended == WENT_ON and has(row, PLACED, inputs.line.slot_of[inputs.line.subject[here[AT]]]):
            early = 0
            ended = _forward(inputs, dive)
        if ended != WENT_ON:
            # The choice was not noted as tried, so it is tried again.
            return ended, seen
        dive.target[top] += 1
        here[EXPLORED] += 1
        if early < together:
            seen = _followed(inputs, dive, seen, early)
    return NOWHERE, seen


@compiled
def _followed(inputs: SearchInput, dive: DfsState, seen: Rows, early: int) -> Rows:
    """Make choices in the configuration in `next`, unless it was met before."""
    here, row = dive.here, dive.next
    known = with_room(seen, 1)
    before = known.size[0]
    row[UNREAD] = here[AT]
    add(known, row)
    row[UNREAD] = 0
    if known.size[0] > before:
        top = here[DEPTH]
        copy(row, dive.row[top])
        dive.at[top] = here[AT]
        dive.choice[top] = FIRST
        dive.target[top] = 0
        dive.steps_before[top] = here[STEPS]
        dive.early[top] = early
        here[DEPTH] = top + 1
    return known


@compiled
def _taken(inputs: SearchInput, dive: DfsState, top: int) -> int:
    """Let the next operation take effect, and then the reads that fit. The configuration in `next` stands before the
    same event then.

    Returns WENT_ON if one took effect, ASKS if an entry is missing, NOWHERE if all was tried.
    """
    line, moves = inputs.line, inputs.moves
    kinds = len(line.does)
    before, row = dive.row[top], dive.next
    while True:
        if dive.choice[top] == FIRST:
            dive.choice[top] = _next_choice(inputs, before, FIRST, dive.first_end)
        choice = dive.choice[top]
        if choice == FIRST - 1 - kinds:
            return NOWHERE
        slot = _slot_of(inputs, choice)
        kind = FIRST - 1 - choice if slot < 0 else line.kind_of[inputs.present.open_in[slot]]
        place = looked_up(moves, before[STATE] * kinds + kind)
        if place < 0:
            return ASKS
        if dive.target[top] == moves.table[place, 2]:
            dive.choice[top] = _next_choice(inputs, before, choice, dive.first_end)
            dive.target[top] = 0
            continue
        target = moves.targets[moves.table[place, 1] + dive.target[top]]
        if slot < 0 and target == before[STATE]:
            dive.target[top] += 1
            continue
        copy(before, row)
        row[STATE] = target
        if slot >= 0:
            put(row, PLACED, slot)
            dive.step[dive.here[STEPS]] = inputs.present.open_in[slot]
        else:
            row[PLACED + 2 * inputs.words + line.column[kind]] += 1
            dive.step[dive.here[STEPS]] = -1 - kind
        dive.here[STEPS] += 1
        for other in range(len(inputs.present.open_in)):
            operation = inputs.present.open_in[other]
            if operation >= 0 and line.does[line.kind_of[operation]] == READS and not has(row, PLACED, other):
                fits = _fits(inputs, row[STATE], operation)
                if fits < 0:
                    return ASKS
                if fits > 0:
                    put(row, PLACED, other)
                    dive.step[dive.here[STEPS]] = operation
                    dive.here[STEPS] += 1
        return WENT_ON


@inlined
def _next_choice(inputs: SearchInput, row: Int64, last: int, first_end: Int64) -> int:
    """The choice behind the last one: first the operations that can take effect, by their ends; then the indefinite
    kinds; the one behind all kinds means that none is left. Of equal operations the one that ends first takes effect:
    they are interchangeable."""
    line, open_in = inputs.line, inputs.present.open_in
    kind = FIRST - last
    if last >= FIRST:
        for slot in range(len(open_in)):
            if open_in[slot] >= 0:
                first_end[line.kind_of[open_in[slot]]] = NEVER
        for slot in range(len(open_in)):
            operation = open_in[slot]
            if operation >= 0 and not has(row, PLACED, slot):
                of_kind = line.kind_of[operation]
                first_end[of_kind] = min(first_end[of_kind], line.end[operation])
        least = NEVER
        for slot in range(len(open_in)):
            if open_in[slot] >= 0:
                of_kind = line.kind_of[open_in[slot]]
                if line.does[of_kind] != READS and last < first_end[of_kind] < least:
                    least = first_end[of_kind]
        if least < NEVER:
            return least
        kind = 0
    while kind < len(line.does):
        used = row[PLACED + 2 * inputs.words + line.column[kind]] if inputs.present.available[kind] else 0
        if inputs.present.available[kind] > used:
            break
        kind += 1
    return FIRST - 1 - kind


@inlined
def _slot_of(inputs: SearchInput, choice: int) -> int:
    """The slot of the operation that is chosen; -1 if the choice is a kind of indefinite ones."""
    open_in = inputs.present.open_in
    found = -1
    for slot in range(len(open_in)):
        if open_in[slot] >= 0 and inputs.line.end[open_in[slot]] == choice:
            found = slot
    return found


@inlined
def _fits(inputs: SearchInput, state: int, operation: int) -> int:
    """How many states a read leads to: 0 if it does not fit; -1 if the entry is missing, which is asked for then."""
    place = looked_up(inputs.moves, state * len(inputs.line.does) + inputs.line.kind_of[operation])
    if place < 0:
        return -1
    targets: int = inputs.moves.table[place, 2]
    return targets


@inlined
def _forward(inputs: SearchInput, dive: DfsState) -> int:
    """Go over the events, with the configuration in `next`, up to the completion of an operation that has not taken
    effect. Returns WENT_ON there, FOUND behind the last event, and ASKS if an entry is missing."""
    line, present, row, here = inputs.line, inputs.present, dive.next, dive.here
    while here[AT] < len(line.event):
        at = here[AT]
        what = line.subject[at]
        if line.event[at] == INVOKED:
            fits = 0
            if line.does[line.kind_of[what]] == READS:
                fits = _fits(inputs, row[STATE], what)
                if fits < 0:
                    return ASKS
            present.open_in[line.slot_of[what]] = what
            if fits > 0:
                put(row, PLACED, line.slot_of[what])
                dive.step[here[STEPS]] = what
                here[STEPS] += 1
        elif line.event[at] == COMPLETED:
            slot = line.slot_of[what]
            if not has(row, PLACED, slot):
                return WENT_ON
            clear(row, PLACED, slot)
            present.open_in[slot] = -1
        elif line.event[at] == MAY_HAPPEN:
            present.available[what] += 1
        else:
            dive.available[at] = present.available[what]
            present.available[what] = 0
            row[PLACED + 2 * inputs.words + line.column[what]] = 0
        here[AT] = at + 1
    return FOUND


@inlined
def _back(inputs: SearchInput, dive: DfsState, at: int) -> None:
    """Undo the events from `at` on."""
    line, present = inputs.line, inputs.present
    while dive.here[AT] > at:
        dive.here[AT] -= 1
        event = dive.here[AT]
        what = line.subject[event]
        if line.event[event] == INVOKED:
            present.open_in[line.slot_of[what]] = -1
        elif line.event[event] == COMPLETED:
            present.open_in[line.slot_of[what]] = what
        elif line.event[event] == MAY_HAPPEN:
            present.available[what] -= 1
        else:
            present.available[what] = dive.available[event]
