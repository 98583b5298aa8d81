"""Storm files, `lost.storm.toml`: a storm that shows an anomaly, on at most a page, to be read, edited and replayed.

    # lost: 1 found
    anomaly = "lost"
    trace = "00f1c0ffee00f1c0ffee00f1c0ffee00"
    system = "memo"
    workload = "queue"
    seed = 0
    …
    # when in s, for how long, what, [random stream]
    schedule = '''
    4.5 for 0.5  power off one of all [power 1]
    '''

    [settings]
    nodes = 1

Of a scenario's fields only those stand there that are not as usual. `trace` is the hash of the whole trace: where it is
the same, all happened as before.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import toml_file
from harness.bounds import quote
from harness.errors import UsageError
from harness.nearest import unknown
from harness.reading import read_given
from harness.record.scenario import Scenario
from stormproof.session import registry
from stormproof.session.registry import Parts

SUFFIX = ".storm.toml"
LONGEST_BYTES = 1 << 20
SCHEDULE_SAYS = "# when in s, for how long, what, [random stream]"

_FIRST = ("system", "workload", "mutant", "seed")
_LAST = ("schedule", "settings")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TRACE = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class StormFile:
    """Raises UsageError for an anomaly that is no name, and a trace that is no hash."""

    scenario: Scenario
    anomaly: str
    """The anomaly that the storm shows."""
    trace: str
    """The hash of its trace."""

    def __post_init__(self) -> None:
        if not isinstance(self.anomaly, str) or not self.anomaly.strip() or not self.anomaly.isprintable():
            raise UsageError(f"anomaly takes the name of one, such as 'lost-write', got {quote(self.anomaly)}")
        if not isinstance(self.trace, str) or not _TRACE.fullmatch(self.trace):
            raise UsageError(f"trace takes the hash of a trace, 32 digits from 0 to f, got {quote(self.trace)}")


def storm_text(storm: StormFile, says: Sequence[str] = ()) -> str:
    """What `parse_storm` reads as an equal value; `says` are comments for its first lines."""
    scenario = storm.scenario
    usual = {field.name: field.default for field in dataclasses.fields(Scenario)}
    unusual = {
        name: getattr(scenario, name)
        for name in (*_FIRST, *(name for name in usual if name not in (*_FIRST, *_LAST)))
        if name == "seed" or getattr(scenario, name) != usual[name]
    }
    lines = [f"# {line}" for line in says]
    lines += [f"anomaly = {_value(storm.anomaly)}", f"trace = {_value(storm.trace)}"]
    lines += [f"{name} = {_value(value)}" for name, value in unusual.items()]
    if scenario.schedule:
        lines += ["", SCHEDULE_SAYS, f"schedule = {_schedule(scenario.schedule)}"]
    if scenario.settings:
        lines += ["", "[settings]"]
        lines += [f"{_key(name)} = {_value(value)}" for name, value in sorted(scenario.settings.items())]
    return "\n".join(lines) + "\n"


def _schedule(lines: Sequence[str]) -> str:
    if any("'''" in line for line in lines):
        return _value(lines)
    return "\n".join(("'''", *lines, "'''"))


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)


def load_storm(path: Path) -> tuple[StormFile, Parts]:
    """A storm file (`-` is standard input), and what the names in it stand for. Raises UsageError with the line."""
    try:
        text = read_given(path, LONGEST_BYTES).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"storm file {path} cannot be read: {reason}") from None
    storm = parse_storm(text, str(path))
    with _in_file(text, str(path)):
        parts = registry.resolve(storm.scenario)
        registry.environment_of(storm.scenario, parts)
    return storm, parts


def parse_storm(text: str, where: str) -> StormFile:
    """Raises UsageError, which names the file as `where`, and the line as far as that is known."""
    data = toml_file.parsed(text, where)
    known = (*StormFile.__dataclass_fields__, *Scenario.__dataclass_fields__)
    with _in_file(text, where):
        for name in data:
            if name not in known or name == "scenario":
                names = [other for other in known if other != "scenario"]
                raise UsageError(unknown("field", name, names, of=" of a storm file"))
        for name in ("anomaly", "trace"):
            if name not in data:
                raise UsageError(f"it lacks the field {name!r}, which says what the storm shows")
        own = {name: value for name, value in data.items() if name not in ("anomaly", "trace", "schedule")}
        scenario = Scenario.from_json({**own, **_schedule_of(data)})
        return StormFile(scenario=scenario, anomaly=data["anomaly"], trace=data["trace"])


def _schedule_of(data: Mapping[str, Any]) -> dict[str, Any]:
    schedule = data.get("schedule", [])
    if isinstance(schedule, str):
        schedule = [line.expandtabs() for line in schedule.removesuffix("\n").split("\n")]
    return {"schedule": schedule}


@contextmanager
def _in_file(text: str, where: str) -> Iterator[None]:
    """Refusals say in which line of which file."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{where}{_line_of(str(error), text)}: {error}") from None


def _line_of(refusal: str, text: str) -> str:
    """`, line 7`, where the refusal begins with a field of the file, or names a line of the schedule."""
    lines = text.splitlines()
    in_schedule = re.match(r"schedule, line (\d+):", refusal)
    named = re.match(r"(?:unknown )?(?:setting |field )?'?(\w+)'?", refusal)
    name = "schedule" if in_schedule else named[1] if named else ""
    for number, line in enumerate(lines, 1):
        if re.match(rf'\s*"?{re.escape(name)}"?\s*=', line):
            return f", line {number + int(in_schedule[1]) if in_schedule else number}"
    return ""
