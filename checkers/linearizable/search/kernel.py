"""The search itself: integers in, integers out, so that one compiled kernel serves every model.

States and kinds of operations are numbers. What a kind does to a state is looked up in a table that the caller fills on
demand: `advance` stops with MISSING where it needs entries that are not there. Then it can go on from the event at
which it stopped as if it had not looked at that event yet.

The events of a history are followed one by one. For a register that is 0 at first:

    0 invoke write 1    INVOKED    the write is open, in a slot of its own
    1 invoke read       INVOKED    the read is open, too; where its result fits the state, it takes effect at once
    2 ok     read 1     COMPLETED  in no configuration did it, for all are in state 0; the write takes effect, and then
                                   the read does: one configuration is left, in state 1, with the write placed
    3 ok     write 1    COMPLETED  it had taken effect, and its slot is free again
"""

from __future__ import annotations

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.search.configurations import (
    PLACED,
    STATE,
    UNREAD,
    Trail,
    add,
    clear,
    copy,
    has,
    no_rows,
    put,
    record,
    set_of,
    with_room,
    with_steps,
)
from checkers.linearizable.search.events import (
    INVOKED,
    MAY_HAPPEN,
    OTHER,
    OVER,
    OVERWRITES,
    READS,
    UNCOUNTED,
    find,
    looked_up,
)
from checkers.linearizable.search.progress import Allowance, Completion, Found, Reached, SearchInput
from checkers.linearizable.search.superfluous import OpenSlots, without_superfluous
from harness.compiled import compiled, inlined

DONE, STUCK, LIMIT, FULL, MISSING = range(5)
"""How `advance` ended. LIMIT: it explored as much as it may. FULL: there is no room for more configurations."""


@compiled
def advance(inputs: SearchInput, allowance: Allowance, until: int, reached: Reached) -> tuple[int, Reached]:
    """Go over the events up to `until`, or until something stops it.

    Returns how it ended, and how far it came: it stands before the event at which it stopped.
    """
    at, current, explored, trail, settled = reached
    line, present = inputs.line, inputs.present
    tried = np.full(len(line.does), -1, dtype=np.int64)
    while at < until:
        settled = explored
        what = line.subject[at]
        if line.event[at] == MAY_HAPPEN:
            present.available[what] += 1
        elif line.event[at] == OVER:
            present.available[what] = 0
            current = _forgotten(current, line.column[what], inputs.words)
        elif line.event[at] == INVOKED:
            trail = with_steps(trail, len(current))
            if not _fits_where_known(inputs, what, current, trail):
                return MISSING, Reached(at, current, explored, trail, settled)
            present.open_in[line.slot_of[what]] = what
        else:
            completion = _completion(inputs, line.slot_of[what], tried, current.shape[1])
            noted = trail.size[0]
            ended, explored, found = _explored(
                inputs, completion, allowance, explored, _split(completion, current, trail)
            )
            trail = found.trail
            if ended != DONE:
                # What is explored again once the entries are there counts again: it takes as long as the first time.
                trail.size[0] = noted
                return ended, Reached(at, current, explored, trail, settled)
            current = found.done.row[: found.done.size[0]]
            if len(current) > 1:
                current = without_superfluous(current, _still_open(inputs, completion))
            present.open_in[completion.slot] = -1
        at += 1
    return DONE, Reached(at, current.copy(), explored, trail, explored)


# An operation is invoked.


@compiled
def _fits_where_known(inputs: SearchInput, operation: int, current: Int64, trail: Trail) -> bool:
    """Let a read take effect at once in the configurations that it fits: it changes nothing, so waiting wins nothing.

        0 invoke write 1, 1 ok write 1, 2 invoke read, 3 ok read 1: at 2 the state is 1, and the read is placed

    Returns False, having changed nothing, if entries are missing.
    """
    line, moves = inputs.line, inputs.moves
    kind = line.kind_of[operation]
    if line.does[kind] != READS:
        return True
    for i in range(len(current)):
        looked_up(moves, current[i, STATE] * len(line.does) + kind)
    if moves.asked[0]:
        return False
    for i in range(len(current)):
        if moves.table[find(moves.table, current[i, STATE] * len(line.does) + kind), 2] > 0:
            put(current[i], PLACED, line.slot_of[operation])
            record(trail, current[i], operation)
    return True


# Equal indefinite operations do not matter any more.


@compiled
def _forgotten(current: Int64, column: int, words: int) -> Int64:
    """The configurations without a count of these operations, so that those that differed only in it become one.

    0 invoke write 1, 1 info write 1, 2 invoke read, 3 ok read 1: behind 3 nothing needs the write any more
    """
    left = no_rows(current.shape[1], len(current))
    for i in range(len(current)):
        row = current[i].copy()
        if column != UNCOUNTED:
            row[PLACED + 2 * words + column] = 0
        add(left, row)
    return left.row[: left.size[0]]


# An operation completes.


@compiled
def _completion(inputs: SearchInput, slot: int, tried: Int64, width: int) -> Completion:
    line, open_in = inputs.line, inputs.present.open_in
    is_open = np.flatnonzero(open_in >= 0)
    does = line.does[line.kind_of[open_in[is_open]]]
    changes = is_open[does != READS]
    return Completion(
        slot,
        is_open[does == READS],
        changes[np.argsort(line.end[open_in[changes]])],
        set_of(is_open[does == OVERWRITES], inputs.words),
        np.flatnonzero(inputs.present.available),
        tried,
        np.empty(width, dtype=np.int64),
    )


@compiled
def _split(completion: Completion, current: Int64, trail: Trail) -> Found:
    """Which configurations lack the operation, and which have it, or may have it unseen."""
    slot, row, free = completion.slot, completion.row, PLACED + len(completion.overwrites)
    lacking, done = no_rows(len(row), len(current)), no_rows(len(row), len(current))
    for i in range(len(current)):
        row[:] = current[i]
        if not has(row, PLACED, slot):
            add(lacking, row)
        if has(row, PLACED, slot) or has(row, free, slot):
            clear(row, PLACED, slot)
            clear(row, free, slot)
            add(done, row)
    return Found(lacking, done, trail)


@compiled
def _explored(
    inputs: SearchInput, completion: Completion, allowance: Allowance, explored: int, found: Found
) -> tuple[int, int, Found]:
    """Let operations take effect in the configurations that lack the one that completes, until it does in all.

        0 invoke write 1, 1 invoke write 2, 2 invoke read, 3 ok read 2: before 3 first write 2 is tried, behind which
        the read fits, then write 1, behind which it does not, and behind write 1 write 2

    Returns how it ended, how many configurations were explored in all, and what was found.
    """
    at = 0
    lacking, done, trail = found
    while at < lacking.size[0]:
        explored += 1
        if explored > allowance.limit:
            return LIMIT, explored, Found(lacking, done, trail)
        if lacking.size[0] + done.size[0] > allowance.room or trail.size[0] > allowance.room:
            return FULL, explored, Found(lacking, done, trail)
        for choice in range(len(completion.changes) + len(completion.possible)):
            kind, slot, step = _chosen(inputs, completion, choice, lacking.row[at], explored)
            if kind < 0:
                continue
            first, targets = _targets(inputs, lacking.row[at], kind)
            if lacking.size[0] + targets > len(lacking.row):
                lacking = with_room(lacking, targets)
            if done.size[0] + targets > len(done.row):
                done = with_room(done, targets)
            if trail.size[0] + targets * (1 + len(completion.reads)) > len(trail.step):
                trail = with_steps(trail, targets * (1 + len(completion.reads)))
            for target in inputs.moves.targets[first : first + targets]:
                _take(inputs, completion, lacking.row[at], (kind, slot, step, target), Found(lacking, done, trail))
        at += 1
        if inputs.moves.asked[0] == len(inputs.moves.missing):
            break
    ended = MISSING if inputs.moves.asked[0] else DONE if done.size[0] else STUCK
    return ended, explored, Found(lacking, done, trail)


@inlined
def _chosen(inputs: SearchInput, completion: Completion, choice: int, row: Int64, number: int) -> tuple[int, int, int]:
    """(kind, slot, number in the trail) of one of the operations that may take effect. The kind is -1 if it cannot take
    effect in this configuration, and the slot is -1 if it is indefinite.

    Of equal open operations the one that ends first takes effect, because they are interchangeable.
    """
    line, changes = inputs.line, completion.changes
    if choice < len(changes):
        slot = changes[choice]
        step = inputs.present.open_in[slot]
        kind = line.kind_of[step]
        if has(row, PLACED, slot) or completion.tried[kind] == number:
            return -1, slot, step
        completion.tried[kind] = number
    else:
        kind = completion.possible[choice - len(changes)]
        slot, step, column = -1, -1 - kind, line.column[kind]
        if column != UNCOUNTED and row[PLACED + 2 * inputs.words + column] >= inputs.present.available[kind]:
            return -1, slot, step
    # An indefinite operation that no read needed before the next overwrite had no effect, so it was not needed.
    return -1 if line.does[kind] == OVERWRITES and row[UNREAD] else kind, slot, step


@inlined
def _targets(inputs: SearchInput, row: Int64, kind: int) -> tuple[int, int]:
    """(where the states to which this kind leads begin, how many there are); none, and the entry is asked for, if it is
    missing."""
    at = looked_up(inputs.moves, row[STATE] * len(inputs.line.does) + kind)
    if at < 0:
        return 0, 0
    return inputs.moves.table[at, 1], inputs.moves.table[at, 2]


@inlined
def _take(
    inputs: SearchInput, completion: Completion, before: Int64, effect: tuple[int, int, int, int], found: Found
) -> None:
    """Let an operation take effect, and then the reads that fit. `effect`: its kind, slot and step, and the new
    state."""
    kind, slot, step, target = effect
    overwriting = inputs.line.does[kind] == OVERWRITES
    if slot < 0 and target == before[STATE] and not overwriting:
        return
    row, free = completion.row, PLACED + inputs.words
    copy(before, row)
    row[STATE] = target
    row[UNREAD] = slot < 0
    if slot >= 0:
        put(row, PLACED, slot)
    elif inputs.line.column[kind] != UNCOUNTED:
        row[PLACED + 2 * inputs.words + inputs.line.column[kind]] += 1
    if overwriting:
        # Right before an overwrite, every open overwrite can take effect unseen.
        for w in range(inputs.words):
            row[free + w] = completion.overwrites[w] & ~row[PLACED + w]
    record(found.trail, row, step)
    _read(inputs, completion, found.trail)
    if not has(row, PLACED, completion.slot):
        add(found.lacking, row)
    # If the operation was free already, this row can still be reached later. The same holds for a row that used an
    # indefinite operation which no read has needed yet.
    is_done = has(row, PLACED, completion.slot) or (
        has(row, free, completion.slot) and not has(before, free, completion.slot)
    )
    if is_done and not row[UNREAD]:
        clear(row, PLACED, completion.slot)
        clear(row, free, completion.slot)
        add(found.done, row)


@inlined
def _read(inputs: SearchInput, completion: Completion, trail: Trail) -> None:
    """Let each open read that fits take effect: it changes nothing, so waiting wins nothing."""
    line, moves, row = inputs.line, inputs.moves, completion.row
    for slot in completion.reads:
        if has(row, PLACED, slot):
            continue
        operation = inputs.present.open_in[slot]
        at = looked_up(moves, row[STATE] * len(line.does) + line.kind_of[operation])
        if at >= 0 and moves.table[at, 2] > 0:
            put(row, PLACED, slot)
            row[UNREAD] = 0
            record(trail, row, operation)


@compiled
def _still_open(inputs: SearchInput, completion: Completion) -> OpenSlots:
    """The slots of the operations that are still open after the completion."""
    changes = completion.changes
    does = inputs.line.does[inputs.line.kind_of[inputs.present.open_in[changes]]]
    reads, others = set_of(completion.reads, inputs.words), set_of(changes[does == OTHER], inputs.words)
    overwrites = completion.overwrites.copy()
    for bits in (reads, overwrites, others):
        clear(bits, 0, completion.slot)
    return OpenSlots(reads, overwrites, others)
