"""A run's outcome in few lines: the seed first, the replay command last where it failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import CheckerResult, Verdict, accepted, excused, found
from checkers.transactions.model.lattice import ConsistencyModel, weakest
from harness.record.scenario import Scenario, SettingValue
from harness.record.usage_log import Quarters
from results.verdict_file import ACCEPTED, as_accepted, plain
from stormproof.cli.console import Console, Tone, remark
from stormproof.cli.exit_code import ExitCode, exit_code_of
from stormproof.session.outcome import Outcome, replay_line

ANOMALIES_SHOWN = 3
"""Examples of each anomaly on the terminal; the report has more, `verdict.json` the count."""


def title(scenario: Scenario) -> str:
    """A scenario in few words, e.g. `rocketmq log, partition+kill, simulated, 60 s, seed 1729`."""
    parts = [
        f"{scenario.system} {scenario.workload}",
        scenario.faults_in_words("+"),
        scenario.environment,
        f"{written(scenario.time_limit_s)} s",
    ]
    if scenario.mutant:
        parts.append(f"mutant {scenario.mutant}")
    parts += [f"{key}={written(value)}" for key, value in sorted(scenario.settings.items())]
    return ", ".join([*parts, f"seed {scenario.seed}"])


def written(value: SettingValue) -> str:
    """As a user writes it: 60 rather than 60.0, true rather than True."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def tell_start(scenario: Scenario, console: Console) -> None:
    console.say(f"seed      {scenario.seed}")
    console.say(f"scenario  {title(scenario)}")


def tell_outcome(outcome: Outcome, console: Console) -> None:
    say_verdict(outcome, console)
    tell_where(outcome, console)
    console.result(as_json(outcome))


def tell_where(outcome: Outcome, console: Console) -> None:
    """Where the report is, how to replay what was not valid, and what could not be written."""
    report = outcome.report
    if outcome.checked:
        console.say(f"checked   {outcome.checked}")
    for number, (node, held) in enumerate(outcome.usage.items()):
        console.say(f"{'' if number else 'usage':<10}{node}: {_usage_words(held)}")
    console.say(f"report    {report if report.exists() else outcome.directory}")
    if outcome.verdict is not Verdict.VALID:
        if outcome.regime:
            console.say("regime    " + ", ".join(f"{name} {value:.3g}" for name, value in outcome.regime.items()))
        console.say(f"replay    {replay_line(outcome.scenario, outcome.directory)}")
    for problem in outcome.problems:
        remark(problem)


def _usage_words(held: Quarters) -> str:
    memory = " → ".join(f"{bytes_ / 2**20:.1f}" for bytes_ in held.memory_bytes)
    handles = " → ".join(map(str, held.handles))
    return f"{memory} MiB of memory, {handles} open files (first and last quarter of {held.samples} samples)"


class Decision(Protocol):
    """A verdict with what it rests on, of a run, a storm or a history."""

    @property
    def verdict(self) -> Verdict: ...
    @property
    def reasons(self) -> tuple[str, ...]: ...
    @property
    def results(self) -> Mapping[str, CheckerResult]: ...


def say_verdict(decision: Decision, console: Console) -> None:
    first, *others = _verdict_lines(decision)
    console.say(first, tone_of(exit_code_of(decision.verdict)))
    for line in others:
        console.say(line)


def tone_of(code: int) -> Tone | None:
    """The tone of an outcome; None for a failure of the harness, which says nothing about the system."""
    return {ExitCode.VALID: Tone.GOOD, ExitCode.INVALID: Tone.BAD, ExitCode.UNKNOWN: Tone.DOUBT}.get(ExitCode(code))


def _verdict_lines(decision: Decision) -> list[str]:
    results = decision.results
    words = ", ".join(word for word in (decision.verdict.value.upper(), excused(results)) if word)
    lines = [f"verdict   {words}", *(f"          {reason}" for reason in decision.reasons)]
    lines += [f"          {as_accepted(reason)}" for reason in accepted(results)]
    for checker, result in sorted(results.items()):
        for name, summary in result.found():
            legal = f" (legal here: {summary.legal})" if summary.legal else ""
            lines.append(f"          {checker}: {name} × {summary.count}{legal}")
            shown = () if summary.legal else summary.examples[:ANOMALIES_SHOWN]
            lines += [f"            {line}" for anomaly in shown for line in _explain(anomaly)]
    standing = standing_of(results)
    if standing is not None:
        lines += _models(standing)
    return lines


def _explain(anomaly: Anomaly) -> Sequence[str]:
    """Step by step where that is how it is explained."""
    steps = anomaly.details.get("steps")
    return [str(step) for step in steps] if isinstance(steps, (list, tuple)) and steps else [anomaly.because]


def _models(standing: Mapping[str, Any]) -> list[str]:
    """Those ruled out by what was found, and those only because they imply one of them, apart."""
    ruled_out = [ConsistencyModel(name) for name in standing["ruled_out"]]
    first = weakest(ruled_out)
    words = ", ".join(model.value for model in first) or "none"
    hence = [model.value for model in ruled_out if model not in first]
    strongest = ", ".join(standing["strongest"]) or "none"
    lines = [
        f"models    ruled out: {words}",
        f"          strongest that remain, up to {standing['model']}: {strongest}",
    ]
    lines[1:1] = [f"          and so all that imply it: {', '.join(hence)}"] if hence else []
    undecided = ", ".join(standing["undecided"])
    return [*lines, f"          undecided: {undecided}"] if undecided else lines


def standing_of(results: Mapping[str, CheckerResult]) -> dict[str, Any] | None:
    """Which models of transactions are ruled out and which remain, if that was asked."""
    for result in results.values():
        if "ruled_out" in result.statistics:
            found = {name: list(result.statistics[name]) for name in ("ruled_out", "strongest", "undecided")}
            return {"model": result.statistics["model"], **found}
    return None


def as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "verdict": outcome.verdict.value,
        "exit_code": int(exit_code_of(outcome.verdict)),
        "reasons": [*found(outcome.results), *outcome.reasons],
        ACCEPTED: list(outcome.accepted),
        "seed": outcome.scenario.seed,
        "scenario": plain(outcome.scenario.to_json()),
        "directory": str(outcome.directory),
        "checked": outcome.checked,
        "operations": plain(outcome.operations),
        "faults": plain(outcome.faults),
        "anomalies": {
            checker: {name: summary.count for name, summary in sorted(result.anomalies.items())}
            for checker, result in sorted(outcome.results.items())
        },
        "replay": replay_line(outcome.scenario, outcome.directory),
    }
