"""An order of events found by rehearsing the history: the most urgent event runs, as soon as what it waits for has run.
Where events wait for each other in a circle, a choice that led there is taken back.

Whoever writes a key waits until the version before has been read by all who read it; at snapshot isolation also while
another one that writes the key has begun and not committed. So each write that runs chooses: this version comes before
those of all other writers that still have to run. Of a circle, one of the choices on it was wrong. The one that was
taken back least often, and of these the last, is turned round: everything since is undone, and edges make it come after
the other one from now on.

    T1 writes x = 1,  T2 writes x = 2 and y = 1,  T3 reads y = 1 and x = 1;  T1 is most urgent, then T2, then T3

    T1 runs;  T2 waits for T3, which reads the version before;  T3 waits for T2, which it reads from.
    T1 before T2 was chosen:  T1 is undone,  T2 runs,  T1,  T3.

It is a search without a memory of what it refuted: it finds orders where there are many, as there are in what stores
leave behind, and proves nothing where it finds none. Bounded by the steps that it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checkers import searching
from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Bool, Int32, Int64
from checkers.transactions.evidence.proof import Decision
from checkers.transactions.isolation.constraints.events import Events, Kept
from checkers.transactions.isolation.constraints.schedule import explains, unread_by_others
from checkers.transactions.isolation.constraints.windows import Windows, windows
from checkers.verdict import Verdict
from harness.compiled import compiled, inlined

FEW_STEPS = 4
"""So many events are run, over and over, for each that there is; then it is given up. Enough where few sessions are
busy at once."""
TURNS = 200
"""A choice that was turned round so often is taken for one that has no right way."""
NOBODY = -1
CHOICES_AN_EVENT = 8
HASHES = 1 << 16
"""At least so many."""


class Manner(NamedTuple):
    """Which choice of a circle is turned round."""

    patience: int
    """Choices that were turned round so many times more than others count as equal to these."""
    latest: bool
    """Of equal ones the one that was made last, or first."""


MANNERS = (Manner(4, True), Manner(1, False))
"""Each finds orders that others do not."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """A history that can be rehearsed, again and again at greater length."""

    events: Events
    windows: Windows
    script: _Script

    @classmethod
    def of(cls, events: Events) -> Rehearsal | None:
        """None if no store that goes by real time can have left the history, or time was up before that was known.

        The reads of a store that does not keep real time may be late, as little as the history allows."""
        for behind in (0,) if events.kept is Kept.REALTIME else _delays(len(events.committed)):
            if searching.is_over():
                break
            narrowed = windows(events, behind=behind)
            if narrowed is not None:
                of_events, forced = narrowed
                return cls(events=events, windows=of_events, script=_script(events, of_events, forced))
        return None

    def decision(self, steps_an_event: int) -> Decision | None:
        """VALID with an order that a store may have gone by, or None if none was found in one manner or another."""
        events, accesses = self.events, self.events.accesses
        most_steps = steps_an_event * events.size
        for manner in MANNERS:
            if searching.is_over():
                break
            with searching.stopping() as stop:
                order = _rehearsed(self.script, self.windows, manner, events.width, accesses.keys, most_steps, stop)
            if len(order) == events.size:
                order = order[order < len(self.windows.high)]
                assert explains(accesses, events.width, order), "an order in which nobody was made to run explains all"
                return Decision(verdict=Verdict.VALID, order=order)
        return None


def _delays(transactions: int) -> list[int]:
    """In history indices: none, and from a few on each twice the one before, until they reach over everything."""
    return [0, *(1 << power for power in range(4, (4 * transactions).bit_length()))]


def _script(events: Events, of_events: Windows, forced: Int32) -> _Script:
    source = np.concatenate((events.base.source, forced[0]))
    target = np.concatenate((events.base.target, forced[1]))
    moments = events.size - len(of_events.high)
    # A moment comes as soon as it can: all that began after it waits for it.
    event_of = np.argsort(np.concatenate((of_events.high, np.full(moments, -1))), kind="stable")
    turn = np.empty(events.size, dtype=np.int64)
    turn[event_of] = np.arange(events.size)
    known = events.accesses
    return _Script(
        *followers(source, target, events.size),
        *followers(target, source, events.size),
        turn,
        event_of,
        known.read_first,
        known.version,
        known.key,
        known.write_first,
        known.write_key,
        known.version_writer,
        known.readers_first,
        known.reader[known.by_version],
    )


class _Script(NamedTuple):
    """What does not change."""

    first: Int64
    """int64[events + 1]: edges from e lead to targets[first[e]:first[e + 1]];"""
    targets: Int32
    before_first: Int64
    """and those to e come from sources[before_first[e]:before_first[e + 1]]."""
    sources: Int32
    turn: Int64
    """int64[events]: the place of each event among all, the most urgent one first;"""
    event_of: Int64
    """and the event at each place."""
    read_first: Int64
    """The rest as in `events.Accesses`; behind the versions that were written come the initial ones of the keys."""
    read_version: Int32
    read_key: Int32
    write_first: Int64
    write_key: Int32
    writer: Int32
    """int32[written versions]"""
    readers_first: Int64
    readers: Int32
    """By version."""


class _Course(NamedTuple):
    """What has run, and what waits."""

    order: Int32
    """int32[events]: events in the order in which they ran;"""
    place: Int32
    """int32[events]: and the place of each that has."""
    ran: Bool
    """bool[events]"""
    waiting: Int32
    """int32[events]: events that precede it and have not run."""
    outstanding: Int32
    """int32[versions]: reads that have not run."""
    current: Int64
    """int64[keys]: the version that was written last;"""
    former: Int64
    """int64[written versions]: and what was there before each."""
    holder: Int32
    """int32[keys]: who has begun and not committed among its writers, or NOBODY; at snapshot isolation alone."""
    before: Int64
    """int64[events]: all edges to it before this one come from events that have run;"""
    reader: Int64
    """int64[versions]: and all its readers before this one have."""


class _Choices(NamedTuple):
    """Versions of a key of which one comes before the other, because it was turned round: edges, from the commit of the
    first to the begin of the second, and from the begin of each that reads the first to the commit of the second."""

    earlier: Int64
    later: Int64
    """int64[room]: versions;"""
    source: Int64
    target: Int64
    """int64[room]: and events."""
    holds: Bool
    """bool[room]: it was not turned round again."""
    next_from: Int64
    next_to: Int64
    head_from: Int64
    """int64[events]: the last choice from there, or NOBODY; the one before in next_from."""
    head_to: Int64
    used: Int64
    """int64[1]: how many there are."""
    turns: Int32
    """int32[a power of two]: how often a pair was turned round, by a hash of the pair."""


class _Wait(NamedTuple):
    """Why an event cannot run: for another event; and the versions of which the earlier was chosen to come first, or
    NOBODY where nothing was chosen."""

    event: int
    earlier: int
    later: int


@compiled
def _rehearsed(
    script: _Script, windows: Windows, manner: Manner, width: int, keys: int, most_steps: int, stop: Bool
) -> Int32:
    """The order, int32[events]; fewer where it was given up."""
    size, transactions = len(script.turn), len(script.read_first) - 1
    course = _course(script, size, keys)
    choices = _choices(size, len(script.writer))
    # Each waits for the next one; the first is the most urgent one of all.
    waiting = np.empty(size, dtype=np.int32)
    is_waiting = np.zeros(size, dtype=np.bool_)
    length, done, steps, front = 0, 0, 0, 0
    while done < size and not stop[0]:
        if length == 0:
            while course.ran[script.event_of[front]]:
                front += 1
            event = script.event_of[front]
        else:
            event = _waits_for(script, course, choices, waiting[length - 1], transactions, width).event
        if event == NOBODY:
            length -= 1
            is_waiting[waiting[length]] = False
            _run(script, course, choices, waiting[length], done, transactions, width)
            done += 1
            steps += 1
            continue
        if not is_waiting[event]:
            waiting[length] = event
            is_waiting[event] = True
            length += 1
            continue
        begin = 0
        while waiting[begin] != event:
            begin += 1
        circle = waiting[begin:length]
        wrong = _least_turned(script, course, choices, windows, manner, circle, done, transactions, width)
        if wrong.earlier == NOBODY or steps > most_steps or choices.used[0] == len(choices.earlier):
            return course.order[:done].copy()
        had_run = done
        done = _turned(script, course, choices, wrong.earlier, wrong.later, done, transactions, width)
        for place in range(done, had_run):
            front = min(front, script.turn[course.order[place]])
        for i in range(length):
            is_waiting[waiting[i]] = False
        length = 0
    return course.order[:done].copy()


@compiled
def _course(script: _Script, size: int, keys: int) -> _Course:
    written = len(script.writer)
    outstanding = np.zeros(written + keys, dtype=np.int32)
    for version in script.read_version:
        outstanding[version] += 1
    waiting = np.zeros(size, dtype=np.int32)
    for event in script.targets:
        waiting[event] += 1
    return _Course(
        np.empty(size, dtype=np.int32),
        np.zeros(size, dtype=np.int32),
        np.zeros(size, dtype=np.bool_),
        waiting,
        outstanding,
        written + np.arange(keys),
        np.zeros(written, dtype=np.int64),
        np.full(keys, NOBODY, dtype=np.int32),
        script.before_first[:-1].copy(),
        script.readers_first[:-1].copy(),
    )


@compiled
def _choices(size: int, written: int) -> _Choices:
    room = CHOICES_AN_EVENT * size + 1024
    hashes = HASHES
    while hashes < 4 * written:
        hashes *= 2
    return _Choices(
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.zeros(room, dtype=np.bool_),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.full(size, NOBODY, dtype=np.int64),
        np.full(size, NOBODY, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(hashes, dtype=np.int32),
    )


@inlined
def _begins(event: int, transactions: int, width: int) -> bool:
    return bool(event < transactions * width and event % width == 0)


@inlined
def _commits(event: int, transactions: int, width: int) -> bool:
    return bool(event < transactions * width and event % width == width - 1)


@compiled
def _hindering_key(script: _Script, course: _Course, event: int, transactions: int, width: int) -> int:
    """A key that it writes for which it cannot run yet: somebody else holds it, or has still to read the version
    before. NOBODY if there is none."""
    t = event // width
    if width > 1 and _begins(event, transactions, width):
        for i in range(script.write_first[t], script.write_first[t + 1]):
            if course.holder[script.write_key[i]] != NOBODY:
                return int(script.write_key[i])
    if _commits(event, transactions, width):
        for i in range(script.write_first[t], script.write_first[t + 1]):
            key: int = script.write_key[i]
            version = course.current[key]
            if unread_by_others(course.outstanding, script.read_first, script.read_version, version, t, width) > 0:
                return key
    return NOBODY


@compiled
def _run(
    script: _Script,
    course: _Course,
    choices: _Choices,
    event: int,
    place: int,
    transactions: int,
    width: int,
) -> None:
    t = event // width
    course.ran[event] = True
    course.order[place] = event
    course.place[event] = place
    if _begins(event, transactions, width):
        for i in range(script.read_first[t], script.read_first[t + 1]):
            course.outstanding[script.read_version[i]] -= 1
        if width > 1:
            for i in range(script.write_first[t], script.write_first[t + 1]):
                course.holder[script.write_key[i]] = t
    if _commits(event, transactions, width):
        for i in range(script.write_first[t], script.write_first[t + 1]):
            key = script.write_key[i]
            course.former[i] = course.current[key]
            course.current[key] = i
            course.holder[key] = NOBODY
    for i in range(script.first[event], script.first[event + 1]):
        course.waiting[script.targets[i]] -= 1
    choice = choices.head_from[event]
    while choice != NOBODY:
        if choices.holds[choice]:
            course.waiting[choices.target[choice]] -= 1
        choice = choices.next_from[choice]


@compiled
def _undone(
    script: _Script,
    course: _Course,
    choices: _Choices,
    event: int,
    transactions: int,
    width: int,
) -> None:
    """The last one that ran has not."""
    t = event // width
    course.ran[event] = False
    if _commits(event, transactions, width):
        for i in range(script.write_first[t], script.write_first[t + 1]):
            key = script.write_key[i]
            course.current[key] = course.former[i]
            if width > 1:
                course.holder[key] = t
    if _begins(event, transactions, width):
        for i in range(script.read_first[t], script.read_first[t + 1]):
            course.outstanding[script.read_version[i]] += 1
            course.reader[script.read_version[i]] = script.readers_first[script.read_version[i]]
        if width > 1:
            for i in range(script.write_first[t], script.write_first[t + 1]):
                course.holder[script.write_key[i]] = NOBODY
    for i in range(script.first[event], script.first[event + 1]):
        target = script.targets[i]
        course.waiting[target] += 1
        course.before[target] = script.before_first[target]
    choice = choices.head_from[event]
    while choice != NOBODY:
        if choices.holds[choice]:
            course.waiting[choices.target[choice]] += 1
        choice = choices.next_from[choice]


@compiled
def _wait(event: int, earlier: int, later: int) -> _Wait:
    return _Wait(np.int64(event), np.int64(earlier), np.int64(later))  # type: ignore[arg-type]  # of one type for numba


@compiled
def _waits_for(script: _Script, course: _Course, choices: _Choices, event: int, transactions: int, width: int) -> _Wait:
    """NOBODY where it may run."""
    if course.waiting[event] > 0:
        while course.before[event] < script.before_first[event + 1]:
            source = script.sources[course.before[event]]
            if not course.ran[source]:
                return _wait(source, NOBODY, NOBODY)
            course.before[event] += 1
        choice = choices.head_to[event]
        while choice != NOBODY:
            if choices.holds[choice] and not course.ran[choices.source[choice]]:
                return _wait(choices.source[choice], choices.earlier[choice], choices.later[choice])
            choice = choices.next_to[choice]
    key = _hindering_key(script, course, event, transactions, width)
    if key == NOBODY:
        return _wait(NOBODY, NOBODY, NOBODY)
    mine = _version_of(script, event // width, key)
    if width > 1 and _begins(event, transactions, width):
        holder = course.holder[key]
        return _wait(holder * width + width - 1, _version_of(script, holder, key), mine)
    version = course.current[key]
    reader = _unread(script, course, version, event, width)
    return _wait(reader, NOBODY if version >= len(script.writer) else version, mine)


@compiled
def _unread(script: _Script, course: _Course, version: int, event: int, width: int) -> int:
    """The first one that has still to read a version, but for the event itself."""
    last = script.readers_first[version + 1]
    while course.reader[version] < last and course.ran[script.readers[course.reader[version]] * width]:
        course.reader[version] += 1
    at = course.reader[version]
    while course.ran[script.readers[at] * width] or script.readers[at] * width == event:
        at += 1
    return int(script.readers[at] * width)


@inlined
def _version_of(script: _Script, t: int, key: int) -> int:
    """The one that it writes of a key."""
    for i in range(script.write_first[t], script.write_first[t + 1]):
        if script.write_key[i] == key:
            return int(i)
    return NOBODY


@compiled
def _least_turned(
    script: _Script,
    course: _Course,
    choices: _Choices,
    windows: Windows,
    manner: Manner,
    circle: Int32,
    done: int,
    transactions: int,
    width: int,
) -> _Wait:
    """The choice on the circle that is to be turned round, if there is one."""
    chosen, fewest, best = _wait(NOBODY, NOBODY, NOBODY), TURNS, 0
    for event in circle:
        wait = _waits_for(script, course, choices, event, transactions, width)
        if wait.earlier == NOBODY:
            continue
        begin = script.writer[wait.earlier] * width
        if windows.low[script.writer[wait.later] * width + width - 1] > windows.high[begin]:
            continue
        turns = choices.turns[_hash(choices, wait.earlier, wait.later)] // manner.patience
        place = course.place[begin] if course.ran[begin] else done
        if turns < fewest or (turns == fewest and (place > best if manner.latest else place < best)):
            chosen, fewest, best = wait, turns, place
    return chosen


@inlined
def _hash(choices: _Choices, one: int, other: int) -> int:
    mixed = (min(one, other) * 0x9E3779B1 + max(one, other)) * 0x85EBCA6B
    return int((mixed ^ (mixed >> 17)) & (len(choices.turns) - 1))


@compiled
def _turned(
    script: _Script,
    course: _Course,
    choices: _Choices,
    earlier: int,
    later: int,
    done: int,
    transactions: int,
    width: int,
) -> int:
    """The later version comes before the earlier one from now on; how many events have run after that."""
    choices.turns[_hash(choices, earlier, later)] += 1
    begin, other = script.writer[earlier] * width, script.writer[later] * width
    if course.ran[begin]:
        for place in range(done - 1, course.place[begin] - 1, -1):
            _undone(script, course, choices, course.order[place], transactions, width)
        done = int(course.place[begin])
    for event in range(other, other + width):
        choice = choices.head_to[event]
        while choice != NOBODY:
            if choices.holds[choice] and choices.earlier[choice] == earlier and choices.later[choice] == later:
                choices.holds[choice] = False
                if not course.ran[choices.source[choice]]:
                    course.waiting[event] -= 1
            choice = choices.next_to[choice]
    _chosen(course, choices, later, earlier, other + width - 1, begin)
    for i in range(script.readers_first[later], script.readers_first[later + 1]):
        reader = script.readers[i] * width
        if reader != begin and reader != other:
            _chosen(course, choices, later, earlier, reader, begin + width - 1)
    return done


@compiled
def _chosen(course: _Course, choices: _Choices, earlier: int, later: int, source: int, target: int) -> None:
    number = choices.used[0]
    if number == len(choices.earlier):
        return
    choices.used[0] = number + 1
    choices.earlier[number] = earlier
    choices.later[number] = later
    choices.holds[number] = True
    choices.source[number] = source
    choices.target[number] = target
    choices.next_from[number] = choices.head_from[source]
    choices.head_from[source] = number
    choices.next_to[number] = choices.head_to[target]
    choices.head_to[target] = number
    if not course.ran[source]:
        course.waiting[target] += 1
