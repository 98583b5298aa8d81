"""What Jepsen leaves of a test: `store/NAME/TIME`, with `history.edn`, `results.edn` and `jepsen.log` in it.

    test = JepsenTest.of(Path("store/latest"))
    test.history, test.name, test.workload, test.results.valid

Read are texts alone; what `test.jepsen` and `test.fressian` hold is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.jepsen import edn
from harness.jepsen.source import BrokenText
from harness.reading import TooLong, read_kept

HISTORIES = ("history.edn", "history.edn.gz", "history.txt")
"""The one that says most comes first: the text lacks times and all that operations have beside their values, and is
written when all operations have ended. Of a test that was killed before, its log has them."""
RESULTS, LOG = "results.edn", "jepsen.log"
_MARKS = (*HISTORIES, RESULTS, LOG, "test.jepsen", "test.fressian")
LONGEST_RESULTS_BYTES = 1 << 26
LOG_HEAD_BYTES = 1 << 20
"""A log begins with what test it is."""
MOST_KEYS = 1_000_000

_NAME = re.compile(r':name\s+"((?:[^"\\]|\\.)+)"')
_WORKLOAD = re.compile(r"(?:\s:workload\s+:?|--workload[ =]|\s-w )([\w-]+)")

OPTIMISM = "unbridled-optimism"
"""The checker to which everything is valid; in results it has no name, but the log shows it. Knossos's model that has
no state is another one."""
_DEMANDED = re.compile(r":consistency-models\s+[\[(#{]+([^\])}]*)[\])}]")
_OPTIMISM = re.compile(r":checker\s+#object\[jepsen\.checker\$(unbridled_optimism|noop)")

BESIDE_THE_HISTORY = frozenset(
    (
        *("perf", "latency-graph", "rate-graph", "latency", "rate", "clock", "clock-plot", "plot", "op-color-plot"),
        *("timeline", "html", "stats", "exceptions", "unhandled-exceptions", "ex", "crash", "assert", "logs", "order"),
        *("log-file-pattern", "not-found", "timestamp-value-plot", "panic", "core-dump"),
        *("net", "availability", OPTIMISM),
    )
)
"""Names of checkers that draw, count, or look at logs: they do not judge what a history shows."""


@dataclass(frozen=True, kw_only=True)
class JepsenVerdict:
    """Of one checker, on one key or on all of them."""

    checker: tuple[str, ...]
    key: str | None
    valid: str
    """`valid`, `invalid` or `unknown`, or how it was written."""
    anomalies: tuple[str, ...] = ()
    """Jepsen's names of them, where it has any."""

    @property
    def judges_history(self) -> bool:
        return BESIDE_THE_HISTORY.isdisjoint(self.checker)

    @property
    def name(self) -> str:
        return "/".join(self.checker) or "all"


@dataclass(frozen=True, kw_only=True)
class JepsenResults:
    valid: str
    """The same, over all checkers."""
    checkers: tuple[JepsenVerdict, ...]
    """Those that have no others in them."""


@dataclass(frozen=True, kw_only=True)
class JepsenTest:
    """A directory of Jepsen's."""

    path: Path
    name: str
    workload: str
    """The workload that its log names; empty where it names none."""
    history: Path
    results: JepsenResults | None
    problem: str = ""
    """Why there are no results."""
    consistency_models: tuple[str, ...] = ()
    """Those that its transactions were to keep to, as its log says."""

    @classmethod
    def of(cls, path: Path) -> JepsenTest:
        """Raises UsageError where there is no history."""
        directory = path.resolve()
        history = next((path / name for name in (*HISTORIES, LOG) if (path / name).is_file()), None)
        if history is None:
            raise UsageError(
                f"{path} is a test of Jepsen's without its history: it has neither history.edn nor history.txt, which "
                "Jepsen writes when all operations have ended, nor jepsen.log; did the test end?"
            )
        head = _head(path / LOG)
        name, workload, demanded = _NAME.search(head), _WORKLOAD.search(head), _DEMANDED.search(head)
        results, problem = _results(path / RESULTS)
        if results is not None and _OPTIMISM.search(head) and results.checkers[0].checker == ():
            results = JepsenResults(valid=results.valid, checkers=(replace(results.checkers[0], checker=(OPTIMISM,)),))
        return cls(
            path=path,
            name=name[1] if name else directory.parent.name,
            workload=workload[1] if workload else "",
            history=history,
            results=results,
            problem=problem,
            consistency_models=tuple(demanded[1].replace(",", " ").split()) if demanded else (),
        )


def is_test_directory(path: Path) -> bool:
    return any((path / name).is_file() for name in _MARKS)


def _head(log: Path) -> str:
    """Empty where there is no log."""
    try:
        with log.open("rb") as file:
            return file.read(LOG_HEAD_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _results(path: Path) -> tuple[JepsenResults | None, str]:
    """What Jepsen found, or why that is not known."""
    try:
        found = edn.document(read_kept(path, LONGEST_RESULTS_BYTES))
    except FileNotFoundError:
        return None, f"there is no {path.name}: Jepsen's analysis did not end"
    except TooLong:
        return None, f"{path.name} is longer than {LONGEST_RESULTS_BYTES >> 20} MiB, and is not read"
    except (OSError, ValueError) as error:
        return None, f"{path.name} cannot be read: {getattr(error, 'strerror', None) or error}"
    except BrokenText as broken:
        return None, f"{path.name} cannot be read as EDN: {broken.reason} (byte {broken.at})"
    if not isinstance(found, dict) or "valid?" not in found:
        return None, f"{path.name} holds no results: a map with :valid? was expected, it is {edn.written(found)[:60]}"
    verdicts = tuple(_verdicts(found, (), None))
    return JepsenResults(valid=_word(found["valid?"]), checkers=verdicts), ""


def _verdicts(found: dict[Any, Any], checker: tuple[str, ...], key: str | None) -> Iterator[JepsenVerdict]:
    """Of the checkers within one that are made of no others."""
    within = {name: one for name, one in found.items() if isinstance(one, dict) and "valid?" in one}
    results = found.get("results")
    of_keys = list(results.items()) if isinstance(results, dict) else []
    is_by_key = any(isinstance(one, dict) and "valid?" in one for _, one in of_keys)
    for name, one in within.items():
        yield from _verdicts(one, (*checker, str(name)), key)
    if is_by_key:
        for name, one in of_keys[:MOST_KEYS]:
            if isinstance(one, dict) and "valid?" in one:
                yield from _verdicts(one, checker, str(name) if isinstance(name, str) else edn.written(name))
    if not within and not is_by_key and _is_of_no_model(found):
        yield JepsenVerdict(checker=(*checker, OPTIMISM), key=key, valid=_word(found["valid?"]))
    elif not within and not is_by_key:
        yield JepsenVerdict(checker=checker, key=key, valid=_word(found["valid?"]), anomalies=_anomalies(found))


def _is_of_no_model(found: dict[Any, Any]) -> bool:
    """Whether Knossos searched with its model to which everything is possible; it has no state, others have one."""
    configs = found.get("configs")
    return (
        isinstance(configs, tuple | list)
        and bool(configs)
        and all(isinstance(one, dict) and one.get("model") == {} for one in configs)
    )


def _anomalies(found: dict[Any, Any]) -> tuple[str, ...]:
    """Elle and the kafka workload name them; sets and queues count them."""
    named = found.get("bad-error-types") or found.get("anomaly-types") or ()
    names = [str(name) for name in named] if isinstance(named, tuple | list) else []
    if _word(found.get("valid?")) != "invalid":
        return tuple(names)
    counted = ("lost", "unexpected", "duplicated", "stale")
    return (*names, *(name for name in counted if found.get(f"{name}-count") not in (None, 0)))


def _word(valid: Any) -> str:
    known: dict[Any, str] = {True: "valid", False: "invalid", "unknown": "unknown"}
    is_known = isinstance(valid, bool | str)
    return known.get(valid, edn.written(valid)) if is_known else edn.written(valid)
