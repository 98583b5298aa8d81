"""`stormproof verify`: a certificate held against its history, by the program that verifies its kind.

That program runs in a process of its own, and shares no code with the checker whose decision it verifies. This command
only finds what it needs: which of the two programs, which history, and that history as Parquet, which text becomes by
the readers that the check used. docs/guide/transactions.md lists what is shared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from checkers.certified import fingerprint
from harness.errors import HarnessError, UsageError
from harness.jepsen.notations import functions_beside, functions_of
from harness.lifetime.scratch import directory
from harness.reading import STANDARD_INPUT
from harness.record.history import MalformedHistory, close_torn
from harness.record.run_directory import HISTORY
from stormproof.cli.candidates import one_or_a_file, run_directories
from stormproof.cli.console import Console
from stormproof.cli.exit_code import ExitCode
from stormproof.cli.export import history_in
from stormproof.cli.options import console_of, example
from stormproof.cli.usage import OneOf
from stormproof.session.check_spec import CheckSpec, converted, of_model, of_workload, transactional
from stormproof.session.foreign_history import Form, HistoryFile, locate_history

ORDERS, TRANSACTIONS = "checkers.linearizable.replay", "checkers.transactions.verify"
"""The programs, by what they verify."""
BY_TIME = "time"
LARGEST_BYTES = 1 << 30
MOST_SECONDS = 86_400

EXAMPLES = """
stormproof verify orders.jsonl
stormproof verify proof.json registers.edn --json
"""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a certificate says that it is of."""

    path: Path
    program: str
    spec: CheckSpec
    """How a foreign history is read."""
    about: str
    history: Path | None
    """The history's name when it was checked."""
    sha256: str | None
    functions: Mapping[str, str] = field(default_factory=dict)
    """What clients call otherwise in it."""
    by_time: bool = False
    """Whether the times of its rows say in which order they happened."""


@click.command("verify", epilog=example(EXAMPLES))
@click.argument("certificate", metavar="CERTIFICATE", type=click.Path(path_type=Path))
@click.argument(
    "history",
    metavar="[HISTORY]",
    required=False,
    type=click.Path(path_type=Path),
    shell_complete=one_or_a_file(run_directories),
)
@click.option(
    "--function",
    "functions",
    multiple=True,
    metavar="NAME=FUNCTION",
    help="What clients call otherwise, as it was said to check. A certificate says it itself, unless an older version "
    "wrote it.",
)
@click.option(
    "--order",
    type=OneOf("order", [BY_TIME]),
    help="time: the times of the history's rows say in which order they happened. The same holds for it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def command(
    certificate: Path, history: Path | None, functions: tuple[str, ...], order: str | None, as_json: bool
) -> int:
    """Verify CERTIFICATE, as check --certify writes it, against HISTORY, in any format that check reads.

    Where HISTORY is left out, it is the one that the certificate names, beside the certificate or where it was when it
    was checked. The model, its options and how the history is read stand in the certificate. What verifies is a program
    of its own that shares no code with the checkers.

    Exit codes: 0 the certificate holds, 3 it is refuted, 254 wrong usage or a file that is no certificate or no
    history, 255 the harness failed.
    """
    console = console_of(as_json, False)
    claim = _read_as(read_certificate(certificate), functions_of(functions), order)
    history = history or _named(claim)
    console.say(f"certificate  {claim.about}")
    console.say(f"history      {history}")
    with directory() as scratch:
        source = locate_history(history_in(history), scratch)
        try:
            parquet = _as_parquet(source, _spec(claim, source), scratch / HISTORY)
        except MalformedHistory as error:
            raise UsageError(str(error.of(source.path))) from None
        code, words = _verified(claim, parquet)
        same = None if claim.sha256 is None else fingerprint(source.file) == claim.sha256
    _report(claim, history, same, code, words, console)
    return code


def read_certificate(path: Path) -> Certificate:
    """Raises UsageError for a file that is no certificate."""
    head = _head(path)
    named = head.get("history")
    named = named if isinstance(named, dict) else {}
    name, sha256 = named.get("name"), named.get("sha256")
    program, spec, about = _transactions(head, path) if "workload" in head else _orders(head, path)
    return Certificate(
        path=path,
        program=program,
        spec=spec,
        about=about,
        history=Path(name) if isinstance(name, str) and name else None,
        sha256=sha256 if isinstance(sha256, str) else None,
        functions=_functions_in(named, path),
        by_time=named.get("order") == BY_TIME,
    )


def _functions_in(named: Mapping[str, Any], path: Path) -> Mapping[str, str]:
    """Raises UsageError."""
    functions = named.get("functions", {})
    if not isinstance(functions, dict) or not all(isinstance(function, str) for function in functions.values()):
        raise UsageError(f"{path} is no certificate that can be verified: its functions must be an object of texts")
    return functions_of(f"{name}={function}" for name, function in functions.items())


def _read_as(claim: Certificate, functions: Mapping[str, str], order: str | None) -> Certificate:
    """With what a user says of the history. Raises UsageError where the certificate says otherwise."""
    if functions and claim.functions and functions != claim.functions:
        said = " ".join(f"--function {name}={function}" for name, function in claim.functions.items())
        raise UsageError(f"by {claim.path} the history was checked with {said}: leave --function out")
    return replace(claim, functions=claim.functions or functions, by_time=claim.by_time or order == BY_TIME)


def _spec(claim: Certificate, history: HistoryFile) -> CheckSpec:
    """How the history is read. Raises UsageError."""
    if history.form is not Form.TEXT:
        return claim.spec  # Its functions are the workload's, and its rows are in order.
    return claim.spec.read_as(claim.functions or functions_beside(history.path), by_time=claim.by_time)


def _head(path: Path) -> Mapping[str, Any]:
    """The first line, where the file has an object a line, or else the one object that it is."""
    try:
        if not path.is_file():
            raise UsageError(f"there is no certificate {path}" if not path.exists() else f"{path} is no file")
        if path.stat().st_size > LARGEST_BYTES:
            raise UsageError(f"{path} is no certificate: it is larger than {LARGEST_BYTES >> 20} MiB")
        with path.open("rb") as file:
            is_object = file.peek(1)[:1] == b"{"
            first = file.readline() if is_object else b""
            try:
                head = json.loads(first) if is_object else None
            except ValueError:
                head = json.loads(first + file.read())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict):
        raise UsageError(f"{path} is no certificate, which is JSON as check --certify writes it")
    return head


def _transactions(head: Mapping[str, Any], path: Path) -> tuple[str, CheckSpec, str]:
    workload, model, verdict = (head.get(name) for name in ("workload", "model", "verdict"))
    if workload not in transactional():
        raise UsageError(f"{path} is a certificate of {workload!r}; known are: {', '.join(transactional())}")
    return TRANSACTIONS, of_workload(workload, ()), f"{verdict} at {model}, of {workload}"


def _orders(head: Mapping[str, Any], path: Path) -> tuple[str, CheckSpec, str]:
    model, failed_cas = head.get("model"), head.get("failed_cas")
    if model is None and "order" in head:
        raise UsageError(
            f"{path} does not say of which model it is, as older versions wrote it: certify again, or name the model "
            f"to python -m {ORDERS} HISTORY.parquet {path} MODEL"
        )
    initial = json.dumps(head["initial"]) if "initial" in head else None
    if not isinstance(model, str) or failed_cas not in (None, "ignored", "answer"):
        raise UsageError(f"{path} is no certificate: neither of a model nor of a workload")
    answers = failed_cas if model == "cas-register" else None
    try:
        spec = of_model(model, initial=initial, failed_cas=answers)
    except (UsageError, KeyError) as error:
        raise UsageError(f"{path} is no certificate that can be verified: {error}") from None
    options = [f"initial {initial}"] if initial is not None else []
    options += ["a failed cas is an answer"] if answers == "answer" else []
    return ORDERS, spec, ", ".join([f"orders of {model}", *options])


def _named(claim: Certificate) -> Path:
    """The history that the certificate names: of those that exist, the one with its fingerprint. Raises UsageError."""
    found = [path for path in _candidates(claim) if path.exists()]
    if not found:
        named = (
            "names no history" if claim.history is None else f"is of {claim.history}, which is not here nor beside it"
        )
        raise UsageError(f"{claim.path} {named}: name it, stormproof verify {claim.path} HISTORY")
    return next((path for path in found if _is_same(claim, path)), found[0])


def _candidates(claim: Certificate) -> Iterator[Path]:
    if claim.history is not None and claim.history != STANDARD_INPUT:
        yield from (
            claim.path.parent / claim.history,
            claim.path.parent / claim.history.name,
            claim.history,
        )


def _is_same(claim: Certificate, history: Path) -> bool:
    """Whether it is, byte by byte, the file that was checked."""
    try:
        return history.is_file() and fingerprint(history) == claim.sha256
    except OSError:
        return False


def _as_parquet(history: HistoryFile, spec: CheckSpec, scratch: Path) -> Path:
    """The history as the programs read it. Raises MalformedHistory, HarnessError."""
    if history.form is Form.PARQUET:
        return history.file
    if history.form is Form.STREAM:
        return close_torn(history.file, scratch).parquet
    converted(history.file, scratch, spec)
    return scratch


def _verified(claim: Certificate, parquet: Path) -> tuple[ExitCode, str]:
    """What the program says. Raises HarnessError where it cannot say anything, UsageError for no certificate."""
    files = (parquet, claim.path) if claim.program == ORDERS else (claim.path, parquet)
    program = [sys.executable, "-m", claim.program, *(str(path.absolute()) for path in files)]
    try:
        said = subprocess.run(program, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{claim.program} could not be run to its end: {error}") from error
    if said.returncode == 0:
        return ExitCode.VALID, said.stdout.strip()
    if said.returncode == ExitCode.REFUTED:
        return ExitCode.REFUTED, said.stdout.strip().removeprefix("refuted: ")
    words = said.stderr.strip().rpartition("\n")[2].partition(": ")[2]
    if said.returncode == ExitCode.WRONG_USAGE:
        raise UsageError(words)
    raise HarnessError(f"{claim.program} ended with {said.returncode}: {words}")


def _report(claim: Certificate, history: Path, same: bool | None, code: ExitCode, words: str, console: Console) -> None:
    """`same`: whether it is the file that was checked, if that is known."""
    console.say(f"{'verified' if code is ExitCode.VALID else 'refuted ':<11}  {words}")
    if code is not ExitCode.VALID and same is False:
        console.say(f"{'':11}  it was made of another file: {claim.history}, SHA-256 {claim.sha256}")
    console.result(
        {
            "certificate": str(claim.path),
            "of": claim.about,
            "history": str(history),
            "same_file": same,
            "verified": code is ExitCode.VALID,
            "words": words,
            "exit_code": int(code),
        }
    )
