"""The command: 0 if all orders hold, 1 if one is refuted, with the reason; 254 for files that are none of these."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from checkers.linearizable.replay import __doc__ as about
from checkers.linearizable.replay.files import Unreadable, certificate, first_line, history, is_own
from checkers.linearizable.replay.objects import FUNCTIONS, OBJECTS, Run, same
from checkers.linearizable.replay.orders import fault
from harness.printable import printable

HOLDS, REFUTED, WRONG_USAGE, FAILED = 0, 3, 254, 255


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Unreadable(f"{message} (see: {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m checkers.linearizable.replay",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("history", type=Path)
    parser.add_argument("certificate", type=Path)
    parser.add_argument("model", nargs="?", help=f"module:NAME for one's own, or {', '.join(sorted(OBJECTS))}")
    parser.add_argument("--initial", type=_json, default=argparse.SUPPRESS)
    parser.add_argument("--failed-cas", choices=("ignored", "answer"))
    return parser


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise argparse.ArgumentTypeError(f"takes a value as JSON, e.g. 0 or null, got {text[:40]!r}") from None


def replay(arguments: Sequence[str]) -> tuple[str, str | None]:
    """(what was verified, what refutes it or None). Raises Unreadable."""
    given = _parser().parse_args(arguments)
    try:
        told = certificate(given.certificate)
        rows = history(given.history)
    except OSError as error:
        raise Unreadable(f"cannot read {error.filename or given.history}: {first_line(error)}") from None
    model = _agreed("model", told.model, given.model)
    if model is None:
        raise Unreadable(f"{given.certificate} does not name its model, as older versions wrote it: name it behind it")
    answers = _agreed("--failed-cas", told.failed_cas, given.failed_cas) == "answer"
    initial = vars(given).get("initial", told.initial)
    if told.says_initial and not same(initial, told.initial):
        raise Unreadable(
            f"by the certificate it begins with {json.dumps(told.initial)}, not with {json.dumps(initial)}: "
            "leave --initial out"
        )
    functions, make = _object(model)
    foreign = sorted({str(row["f"]) for row in rows if row["process"] >= 0} - functions)
    if foreign:
        raise Unreadable(f"{given.history} is no history of a {model}: nothing such is asked to {foreign[0]}")
    try:
        wrong = fault(rows, told.orders, lambda: make(initial), answers)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise Unreadable(f"the values or the initial value are none of a {model}: {first_line(error)}") from None
    return "1 order holds" if len(told.orders) == 1 else f"{len(told.orders)} orders hold", wrong


def _object(model: str) -> tuple[frozenset[str], Callable[[Any], Run]]:
    """(the functions of the object, what makes one that begins with a value). A user's own model is taken from its
    module, because it is the definition. Raises Unreadable."""
    if not is_own(model):
        if model not in OBJECTS:
            raise Unreadable(f"there is no model {model!r}; known are: {', '.join(sorted(OBJECTS))}")
        return FUNCTIONS[model], OBJECTS[model]
    module, _, name = model.partition(":")
    try:
        own = getattr(importlib.import_module(module), name)
        return frozenset(own.functions), own.replayed
    except Exception as error:  # noqa: BLE001  whatever a user's module raises
        raise Unreadable(f"model {model} cannot be imported: {type(error).__name__}: {first_line(error)}") from None


def _agreed(name: str, certified: str | None, option: str | None) -> str | None:
    """What the certificate says, or else the option. Raises Unreadable if they contradict each other."""
    if certified is not None and option is not None and certified != option:
        raise Unreadable(f"the certificate is of {name.lstrip('-')} {certified}, not of {option}: leave {name} out")
    return option if certified is None else certified


def main(arguments: Sequence[str]) -> int:
    try:
        holds, wrong = replay(arguments)
    except Unreadable as error:
        print(printable(f"replay: {error}"), file=sys.stderr)
        return WRONG_USAGE
    except Exception as error:  # noqa: BLE001  # the outermost boundary: a failure of ours is no refutation
        print(printable(f"replay: this program failed: {type(error).__name__}: {error}"), file=sys.stderr)
        return FAILED
    print(printable(holds if wrong is None else f"refuted: {wrong}"))
    return HOLDS if wrong is None else REFUTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
