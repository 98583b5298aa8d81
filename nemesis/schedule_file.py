"""Schedules as text: a line for each fault, to be read, edited and run again.

    # comments
    4.213377 for 12.5  isolate b1                                [partition 0]
    16.02 for 3        kill one of bookies                       [kill 2]
    20 for 2           kill it when 3rd alter-proposed           [mine 0]

Such a line says when the fault strikes, in seconds from the beginning of the storm, for how long, its shape, and the
random stream from which it draws when it strikes. A fault with a trigger (`nemesis/trigger.py`) is armed at that time,
strikes when a node reaches the point, and is healed so many seconds later, at the storm's end at the latest.
No two faults draw from one stream, so that lines can be changed, added and taken away without touching the others.
Times are exact: nine digits after the point are nanoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.bounds import quote
from harness.errors import UsageError
from harness.reading import read_given
from harness.record.fault_log import QUORUM
from harness.seed import Seed
from nemesis.grammar import Mistake, Words, meant, parse_shapes
from nemesis.periodic import NoSettings
from nemesis.schedule import Entry
from nemesis.shape import Shape
from nemesis.trigger import Trigger
from nemesis.trigger_grammar import parse_trigger, require_at_once, require_known_node, split
from nemesis.vocabulary import Vocabulary

EXAMPLE = "12.5 for 5 kill one of all [kill 0]"
LONGEST_FILE_BYTES = 1 << 24
SECOND_NS = 1_000_000_000
DAY_NS = 24 * 3600 * SECOND_NS

_SECONDS = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?")
_NUMBER = re.compile(r"[0-9]{1,18}")
_HEADER = """\
# When faults strike, in seconds from the beginning of the storm, for how long, what they do, and the random stream that
# each draws from. Lines may be changed, added and taken away: the others stay as they are. Run it with:
#   {command}
"""


@dataclass(frozen=True, slots=True)
class Written:
    """A schedule that was read from lines; stands where a package stands."""

    entries: tuple[Entry, ...]
    name = "schedule"
    settings_type = NoSettings

    @property
    def waits_for_points(self) -> bool:
        return any(entry.trigger is not None for entry in self.entries)

    @property
    def fault(self) -> str:
        """The kinds that the environment must be able to apply, with `+` between."""
        return "+".join(sorted({kind for entry in self.entries for kind in entry.shape.kind.split("+")}))

    def schedule(self, seed: Seed, settings: NoSettings, time_limit_s: float) -> tuple[Entry, ...]:
        return self.entries


def lines_of(path: Path) -> tuple[str, ...]:
    """The lines of a schedule file (`-` is standard input). Raises UsageError if it cannot be read."""
    try:
        text = read_given(path, LONGEST_FILE_BYTES).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"schedule file {path} cannot be read: {reason}") from None
    return tuple(line.expandtabs().rstrip() for line in text.removesuffix("\n").split("\n"))


def read_schedule(lines: Sequence[str], vocabulary: Vocabulary, storm_s: float) -> Written:
    """The faults of a schedule for a storm of so many seconds. Raises UsageError with the number of the wrong line."""
    entries: list[Entry] = []
    line_of: dict[tuple[str, int], int] = {}
    for number, line in enumerate(lines, 1):
        words = tuple(line.partition("#")[0].split())
        if not words:
            continue
        try:
            entry = _entry(words, vocabulary, round(storm_s * SECOND_NS))
            first = line_of.setdefault((entry.package, entry.number), number)
            if first != number:
                raise Mistake(f"the random stream [{entry.package} {entry.number}] is that of line {first}")
        except Mistake as mistake:
            near = (
                f"did you mean '{' '.join(mistake.corrected)}'?" if mistake.corrected else f"a line reads '{EXAMPLE}'"
            )
            raise UsageError(f"schedule, line {number}: {mistake.what}; {near}") from None
        entries.append(entry)
    if not entries:
        raise UsageError("the schedule has no line with a fault; for a run without faults say --nemesis none")
    return Written(tuple(entries))


def entries_that_fit(lines: Sequence[str], vocabulary: Vocabulary, storm_s: float) -> tuple[Entry, ...]:
    """As `read_schedule`, but without the faults at nodes that there are not, and those after the storm; a fault that
    would outlast the storm ends with it."""
    storm_ns = round(storm_s * SECOND_NS)
    entries = []
    for line in lines:
        try:
            entry = _entry(tuple(line.split()), vocabulary, 2 * (storm_ns + DAY_NS))
        except Mistake:
            continue
        if entry.at_ns < storm_ns:
            entries.append(replace(entry, until_ns=min(entry.until_ns, storm_ns)))
    return tuple(entries)


def lines_without_comments(entries: Sequence[Entry]) -> tuple[str, ...]:
    """A scenario's schedule of these entries, in order of time."""
    return tuple(_line(entry, 0) for entry in _in_order(entries))


def schedule_text(entries: Sequence[Entry], command: str) -> str:
    """What `read_schedule` reads as the same entries, in order of time; `command` is how a user runs it."""
    width = max((len(entry.what) for entry in entries), default=0)
    lines = [f"{_line(entry, width)}\n" for entry in _in_order(entries)]
    return _HEADER.format(command=command) + "".join(lines)


def _in_order(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (entry.at_ns, entry.package, entry.number))


def _line(entry: Entry, width: int) -> str:
    return (
        f"{_in_seconds(entry.at_ns)} for {_in_seconds(entry.until_ns - entry.at_ns):<13}"
        f" {entry.what:<{width}} [{entry.package} {entry.number}]"
    )


def _entry(words: Words, vocabulary: Vocabulary, storm_ns: int) -> Entry:
    """Raises Mistake."""
    at_ns = _nanoseconds(words[:1], "when the fault strikes")
    if words[1:2] != ("for",):
        raise Mistake(f"expected 'for' and a length after '{words[0]}', got {_got(words[1:2])}")
    length_ns = _nanoseconds(words[2:3], "the fault's length")
    stream = next((place for place, word in enumerate(words) if word.startswith("[")), len(words))
    package, number = _stream(words[stream:])
    shape, trigger = _what(words[3:stream], vocabulary)
    lasts = f"but the storm lasts {_in_seconds(storm_ns)} s (its time limit, less the part for --liveness)"
    if length_ns == 0:
        raise Mistake("the fault's length is a number of seconds greater than 0, got '0'")
    if at_ns >= storm_ns:
        raise Mistake(f"the fault strikes at {words[0]} s, {lasts}")
    if at_ns + length_ns > storm_ns:
        raise Mistake(f"the fault is healed at {_in_seconds(at_ns + length_ns)} s, {lasts}")
    return Entry(at_ns=at_ns, until_ns=at_ns + length_ns, package=package, number=number, shape=shape, trigger=trigger)


def _what(words: Words, vocabulary: Vocabulary) -> tuple[Shape, Trigger | None]:
    """Raises Mistake."""
    of_shape, of_trigger = split(words)
    try:
        shape = parse_shapes(of_shape, vocabulary, after="'and', 'when', 'after' or a random stream")
    except Mistake as mistake:
        near = meant(mistake, lambda corrected: parse_shapes(corrected, vocabulary))
        raise Mistake(mistake.what, None if near is None else (*str(near).split(), *of_trigger)) from None
    try:
        trigger = parse_trigger(of_trigger, vocabulary.points)
    except Mistake as mistake:
        raise Mistake(mistake.what, None if mistake.corrected is None else (*of_shape, *mistake.corrected)) from None
    require_known_node(of_shape, trigger)
    require_at_once(shape, trigger)
    return shape, trigger


def _stream(words: Words) -> tuple[str, int]:
    """Raises Mistake."""
    if not words:
        raise Mistake("the fault's random stream, such as [kill 0], is missing at the line's end")
    text = " ".join(words)
    package, _, number = text.removeprefix("[").removesuffix("]").rpartition(" ")
    if not text.endswith("]") or not package.strip() or not _NUMBER.fullmatch(number):
        raise Mistake(f"a random stream is a name and a whole number, such as [kill 0], got {quote(text)}")
    if package == QUORUM:
        raise Mistake(f"the random stream {text} is kept for the nodes that --liveness takes down")
    return package, int(number)


def _nanoseconds(words: Words, what: str) -> int:
    """Raises Mistake."""
    read = _SECONDS.fullmatch(words[0]) if words else None
    if read is None:
        raise Mistake(f"expected {what}, as seconds such as 12.5, got {_got(words)}")
    return int(read[1]) * SECOND_NS + int((read[2] or "").ljust(9, "0"))


def _got(words: Words) -> str:
    return quote(words[0]) if words else "nothing"


def _in_seconds(time_ns: int) -> str:
    """Exactly, without zeros at the end."""
    whole, rest = divmod(time_ns, SECOND_NS)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
