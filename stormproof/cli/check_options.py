"""What `stormproof check` is asked to judge a history as, and which of these options fit which kind of PATH.

A run directory says itself what was run, with which workload and settings, and is judged as just that. Nothing of it
can be overridden: a verdict over a run that took another workload, or another promise, would stand in that run's
directory as if it were the run's own. So every option that says what a history is one of is refused for a run
directory, by name; the history in it can be judged as anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from checkers.names import MODELS
from checkers.transactions.model.lattice import ConsistencyModel, model_named
from harness.errors import UsageError
from harness.jepsen.notations import functions_beside, functions_of
from harness.jepsen.recognise import KAFKA, NOTHING, Kind, Recognised, is_of_kafka, recognised
from harness.jepsen.test_directory import JepsenTest
from harness.record.run_directory import RunDirectory
from stormproof.session.check_spec import CheckSpec, demands, of_model, of_workload, transactional
from stormproof.session.foreign_history import Form, HistoryFile
from stormproof.session.output_file import require_writable
from stormproof.session.registry import names

BY_TIME = "time"
SESSIONS = "rw-register"
"""What histories of sessions without times are judged as."""
WITHOUT_TIMES = ConsistencyModel.STRONG_SESSION_SERIALIZABLE.value
BY_REALTIME = (ConsistencyModel.STRICT_SERIALIZABLE, ConsistencyModel.STRONG_SNAPSHOT_ISOLATION)


class NothingHappened(Exception):
    """A history without operations of clients, or without an answer to any, of which nobody said what it is one of."""


def _not_recognised(path: Path, found: Recognised) -> str:
    what = f"{path} does not say what it is a history of: its clients did {found.seen}"
    if found.kinds:
        return f"{what}, which may be {' or '.join(kind.words() for kind in found.kinds)}; say which"
    ways = f"--workload ({', '.join(names('workloads'))}) or --model ({', '.join(MODELS)})"
    return (
        f"{what}, which is nothing that is recognised; say what it is one of with {ways}, and with --function "
        "NAME=FUNCTION what its clients call otherwise"
    )


def _demanded(test: JepsenTest | None, kind: Kind) -> str | None:
    """The model that transactions of a test were to keep to, where it says one that is known."""
    if test is None or kind.workload not in transactional() or len(test.consistency_models) != 1:
        return None
    try:
        return model_named(test.consistency_models[0]).value
    except ValueError:
        return None


def _either(path: Path, found: Recognised) -> str:
    kinds = " or ".join(kind.words() for kind in found.kinds)
    return (
        f"too little happened: {path} has no answer that shows anything; its clients did {found.seen}, which may be "
        f"{kinds}, and nothing could have contradicted either"
    )


@dataclass(frozen=True, kw_only=True)
class HistoryOptions:
    """The options that say what a history without its run is one of; None or empty where one was not given."""

    workload: str | None = None
    model: str | None = None
    initial: str | None = None
    failed_cas: str | None = None
    null_reads: str | None = None
    consistency_model: str | None = None
    assume: tuple[str, ...] = ()
    certify: Path | None = None
    settings: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    order: str | None = None

    def spec(self, paths: int) -> CheckSpec | None:
        """How each of so many histories is judged; None where no option says.

        Raises UsageError where options do not fit each other, or what they name.
        """
        self._refuse_contradictions(paths)
        spec: CheckSpec | None = None
        if self.workload is not None:
            settings = (*self.settings, *demands(self.workload, self.consistency_model, self.assume))
            spec = of_workload(self.workload, settings, certificate=self.certify)
        elif self.model is not None:
            spec = of_model(
                self.model,
                initial=self.initial,
                failed_cas=self.failed_cas,
                null_reads=self.null_reads,
                certificate=self.certify,
            )
        functions = functions_of(self.functions)
        if spec is None:
            return None
        spec = replace(spec, arguments=self.arguments())
        return spec.read_as(functions, by_time=self.order == BY_TIME)

    def as_recorded(self, source: HistoryFile, test: JepsenTest | None = None) -> HistoryOptions:
        """The same, with what the history itself says of what it is one of, and its test of what was demanded.

        Raises UsageError where that is not to be seen, MalformedHistory, HarnessError.
        """
        if source.notation:
            return self._of_sessions(source)
        if source.form is not Form.TEXT:
            if self.order is not None or self.functions:
                raise UsageError(
                    f"--order and --function are for histories in text, and {source.path} is one of ours, whose rows "
                    "are in order and whose functions are the workload's: leave them out"
                )
            return self
        beside = functions_beside(source.path)
        self = replace(self, functions=(*(f"{name}={one}" for name, one in beside.items()), *self.functions))
        if self.model is not None or (self.workload or "log") != "log":
            return self
        functions = functions_of(self.functions)
        if self.workload is not None:
            says_how = any(setting.startswith("writes=") for setting in self.settings)
            settings = () if says_how or not is_of_kafka(source.file, functions) else KAFKA
            return replace(self, settings=(*self.settings, *settings))
        found = recognised(source.file, functions)
        if found.seen == NOTHING:
            raise NothingHappened(f"nothing happened: {source.path} holds no operation of a client")
        if test is not None:
            found = found.of_test(f"{test.workload} {test.name}")
        if len(found.kinds) > 1 and found.shows_nothing and self.consistency_model is None:
            raise NothingHappened(_either(source.path, found))
        if len(found.kinds) != 1:
            raise UsageError(_not_recognised(source.path, found))
        (kind,) = found.kinds
        return replace(
            self,
            workload=kind.workload,
            model=kind.model,
            settings=kind.settings,
            functions=(*kind.functions, *self.functions),
            consistency_model=self.consistency_model or _demanded(test, kind),
        )

    def _of_sessions(self, source: HistoryFile) -> HistoryOptions:
        """The same for a history of sessions without times. Raises UsageError."""
        named = f"{source.path} is a history of transactions on registers in {source.notation}"
        if self.model is not None or self.workload not in (None, SESSIONS):
            raise UsageError(f"{named}, which is judged with --workload {SESSIONS}")
        demanded = self.consistency_model or WITHOUT_TIMES
        says_model = any(setting.startswith("model=") for setting in self.settings)
        if not says_model and model_named(demanded) in BY_REALTIME:
            raise UsageError(
                f"{named}, and says nothing of when transactions took place: {demanded} cannot be judged; say another "
                f"--consistency-model, such as {WITHOUT_TIMES}"
            )
        if says_model:
            return replace(self, workload=SESSIONS)
        return replace(self, workload=SESSIONS, consistency_model=demanded)

    def require_no_run(self, path: Path) -> None:
        """Raises UsageError for a run directory if any of these options was given."""
        if not self.as_written() or not RunDirectory(path).scenario.exists():
            return
        several = len(self.as_written()) > 1
        raise UsageError(
            f"{path} is a run directory, which is judged as its scenario says, so {' and '.join(self.as_written())} "
            f"{'do' if several else 'does'} not apply: leave {'them' if several else 'it'} out, or name the history "
            f"in it ({RunDirectory(path).history}), which can be judged as any other"
        )

    def subject(self) -> str:
        """The name of the model or the workload; empty where neither was given."""
        return self.model or self.workload or ""

    def as_written(self) -> tuple[str, ...]:
        """As they were written: `--workload bank`, `--set total=3`."""
        words = {
            "--workload": self.workload,
            "--model": self.model,
            "--initial": self.initial,
            "--failed-cas": self.failed_cas,
            "--null-reads": self.null_reads,
            "--consistency-model": self.consistency_model,
            "--certify": self.certify,
            "--order": self.order,
        }
        single = [f"{name} {value}" for name, value in words.items() if value is not None]
        return (
            *single,
            *(f"--assume {one}" for one in self.assume),
            *(f"--set {one}" for one in self.settings),
            *(f"--function {one}" for one in self.functions),
        )

    def arguments(self) -> tuple[str, ...]:
        """The words of a command line that judges a history alike; whether it is certified changes no verdict."""
        judged_as = [words for words in self.as_written() if not words.startswith("--certify ")]
        return tuple(word for words in judged_as for word in words.split(" ", 1))

    def _refuse_contradictions(self, paths: int) -> None:
        workload, model, of_transactions = self.workload, self.model, " or ".join(transactional())
        if workload is not None and model is not None:
            raise UsageError("a history is judged by --workload or by --model, not by both")
        for_model = [("--initial", self.initial), ("--failed-cas", self.failed_cas), ("--null-reads", self.null_reads)]
        for name, value in for_model:
            if model is None and value is not None:
                raise UsageError(
                    f"{name} is for --model, not for --workload or a run: leave it out, or say which --model"
                )
        if self.certify is not None and ((model is None and workload not in transactional()) or paths > 1):
            raise UsageError(f"--certify is for a single history with --model, or --workload {of_transactions}")
        if self.certify is not None:
            require_writable(self.certify)
        for_transactions = [("--consistency-model", self.consistency_model), ("--assume", self.assume or None)]
        for name, demanded in for_transactions:
            is_open = workload is None and model is None
            if demanded is not None and not is_open and workload not in transactional():
                raise UsageError(f"{name} is for --workload {of_transactions}: leave it out, or say which of them")
        if workload is None and self.settings:
            raise UsageError("--set is for --workload, not for --model or a run: leave it out, or say which --workload")
