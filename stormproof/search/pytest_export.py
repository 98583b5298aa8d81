"""A storm file as a test for pytest, which fails for as long as the system does not withstand the storm."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from harness.record.scenario import Scenario
from stormproof.search.storm_file import StormFile
from stormproof.session.registry import Parts

_TEXT = '''"""A storm that shows {anomaly}; made by stormproof replay FILE --as-test from a storm file."""

from pathlib import Path

from stormproof import chosen, run, storm

SCHEDULE = """\\
{schedule}
"""


def test_no_{name}(tmp_path: Path) -> None:
    outcome = run(
        storm(
            system={system},
            workload={workload},
            schedule=tuple(SCHEDULE.splitlines()),
{rest}
        ),
        runs=tmp_path,
    )
    assert not outcome.anomalies(), outcome.words()
'''
_TOLD = ("system", "workload", "schedule", "settings")


def as_test(storm: StormFile, parts: Parts) -> str:
    """Its source, with names of the package `stormproof` alone."""
    scenario = storm.scenario
    own = {field.name for field in dataclasses.fields(parts.workload.settings_type)}
    of_workload = {name: value for name, value in scenario.settings.items() if name in own}
    of_system = {name: value for name, value in scenario.settings.items() if name not in own}
    usual = {field.name: field.default for field in dataclasses.fields(Scenario)}
    rest = {
        name: getattr(scenario, name)
        for name in usual
        if name not in _TOLD and (name == "seed" or getattr(scenario, name) != usual[name])
    }
    schedule = "\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in scenario.schedule)
    return _TEXT.format(
        anomaly=storm.anomaly,
        schedule=schedule,
        name=re.sub(r"\W+", "_", storm.anomaly),
        system=_chosen(scenario.system, of_system),
        workload=_chosen(scenario.workload, of_workload),
        rest="\n".join(f"            {name}={_literal(value)}," for name, value in rest.items()),
    )


def _chosen(name: str, settings: Mapping[str, Any]) -> str:
    given = ", ".join([_literal(name), *(f"{key}={_literal(settings[key])}" for key in sorted(settings))])
    return f"chosen({given})"


def _literal(value: Any) -> str:
    """With double quotes where there is a choice, as formatters have it."""
    if isinstance(value, str) and not set(value) & {'"', "'", "\\"}:
        return f'"{value}"'
    return repr(value)
