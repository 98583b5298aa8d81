"""From a scenario to a verdict: its names are resolved once, it is carried out, and what it recorded is judged.

The analysis happens even where the run was cut short or its teardown failed, and a failure of the harness never hides a
verdict already reached.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from checkers.api.verdict import Verdict
from harness.errors import HarnessError, UsageError
from harness.progress import Moment, Progress, unwatched
from harness.record.scenario import Scenario
from stormproof.session import engines, registry
from stormproof.session.engines import BY_DEFAULT, CheckOptions
from stormproof.session.execute import execute_scenario
from stormproof.session.judge import check_run
from stormproof.session.outcome import Outcome
from stormproof.session.registry import Parts


def run_scenario(
    scenario: Scenario,
    *,
    parts: Parts | None = None,
    runs: Path = Path("runs"),
    options: CheckOptions = BY_DEFAULT,
    progress: Progress = unwatched,
    recording: Path | None = None,
) -> Outcome:
    """Run and judge one scenario; `parts` are what its names stand for, where they were resolved before.

    Raises UsageError before anything was started, HarnessError where the harness failed before the final reads
    were done and what was recorded until then breaks no promise.
    """
    parts = parts or registry.resolve(scenario)
    kind = registry.environment_of(scenario, parts)
    started = time.monotonic()
    expected = engines.choose(
        options.engine, options.master, rows=engines.rows_of_storm(scenario), subject=scenario.workload, estimated=True
    )
    progress(f"engine {expected.words()}")
    progress(Moment(f"starting engine {expected.name}"))
    engines.make_engine(expected, progress)  # a Spark that does not start is known before the storm, not after it
    executed = execute_scenario(scenario, parts, kind, runs=runs, progress=progress, recording=recording)
    failure = executed.failure
    try:
        outcome = check_run(
            executed.directory.path,
            parts=parts,
            options=options,
            progress=progress,
            started=started,
        )
    except (HarnessError, UsageError) as error:
        raise failure or error from None
    if failure is None:
        return outcome
    if outcome.verdict is Verdict.INVALID or executed.complete:
        return replace(outcome, problems=(f"the harness failed: {failure}", *outcome.problems))
    raise failure
