"""What the README shows is what there is."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

import click
import pytest

from checkers.transactions.elle.graph.cycles import NAMES as CYCLES
from checkers.transactions.meanings import NO_ORDER
from harness.cli import run
from harness.cli.exit_code import ExitCode
from harness.cli.main import group
from harness.errors import UsageError
from harness.record.scenario import Scenario, nemesis_names
from harness.session import resolve as registry
from harness.session.judgement import of_model
from harness.session.resolve import workloads
from harness.session.suite_file import parse_suite

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_test_is_the_example_that_runs_and_fits_in_twenty_lines() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    example = (ROOT / "examples" / "test_losing_the_master.py").read_text(encoding="utf-8")
    assert shown in example
    assert len(shown.strip().splitlines()) <= 20


def test_every_command_shown_is_understood() -> None:
    shown = re.findall(r"`stormproof ([^`]+)`", README)
    assert len(shown) >= 7
    for line in shown:
        name, *arguments = shlex.split(line)
        command = group.get_command(click.Context(group), name)
        assert command is not None, line
        if arguments or name in ("list", "doctor", "cleanup"):
            command.make_context(name, arguments).close()


def test_every_run_in_a_block_of_commands_names_what_there_is() -> None:
    runs = [shlex.split(line)[2:] for line in README.splitlines() if line.startswith("stormproof run ")]
    assert len(runs) >= 5
    for words in runs:
        with run.command.make_context("run", words) as context:
            options = context.params
        if options["system"] == "memo":  # the example in examples/, which is not installed here
            continue
        nemesis = nemesis_names(options["nemesis"])
        scenario = Scenario(
            system=options["system"],
            workload=options["workload"] or registry.usual_workload(options["system"]),
            nemesis=nemesis,
            environment=options["environment"],
            mutant=options["mutant"],
            settings=dict(map(registry.parse_setting, options["settings"])),
        )
        registry.environment_of(scenario, registry.resolve(scenario))


def test_every_check_and_export_in_a_block_of_commands_is_understood() -> None:
    shown = [shlex.split(line)[1:] for line in README.splitlines() if re.match(r"stormproof (check|export) ", line)]
    assert {name for name, *_ in shown} == {"check", "export"}
    for name, *words in shown:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        with command.make_context(name, words) as context:
            model = context.params.get("model")
        if name == "check" and model:
            of_model(model, initial=context.params["initial"], failed_cas=context.params["failed_cas"])


def test_the_suite_makes_as_many_scenarios_as_it_is_said_to() -> None:
    blocks = [block for block in re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL) if "[[matrix]]" in block]
    (count,) = re.findall(r"runs its (\d+) scenarios", README)
    assert len(parse_suite(blocks[0], "before-merge.toml").scenarios) == int(count)
    for block in blocks:
        for scenario in parse_suite(block, "shown.toml").scenarios:
            registry.environment_of(scenario, registry.resolve(scenario))


def test_every_exit_code_is_in_the_table() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", README, flags=re.MULTILINE)] == sorted(ExitCode)


def test_every_file_it_points_at_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_place_that_the_documents_name_is_there() -> None:
    docs = ROOT / "docs"
    documents = [docs / "architecture.md", *(docs / "decisions").rglob("*.md"), *(docs / "lab").glob("*.md")]
    texts = {str(document.relative_to(docs)): document.read_text(encoding="utf-8") for document in documents}
    for page in (docs / "systems").glob("*.md"):
        _, _, decisions = page.read_text(encoding="utf-8").partition("\n## Decisions\n")
        texts[f"systems/{page.name}"] = decisions
    for name, text in texts.items():
        for place in re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", text):
            assert (ROOT / place).exists(), f"{name}: {place}"


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs" / "decisions"
    text = (folder / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[\d{4}\]\(((?:rocketmq/)?\d{4}-[\w-]+\.md)\)", text, flags=re.MULTILINE)
    assert sorted(listed) == sorted(str(path.relative_to(folder)) for path in folder.rglob("0*.md"))
    pages = re.findall(r"^\*\*\[[^\]]+\]\(\.\./lab/([\w-]+\.md)\)\*\*$", text, flags=re.MULTILINE)
    assert sorted(pages) == sorted(path.name for path in (ROOT / "docs" / "lab").iterdir())


def is_below(anomaly: str) -> bool:
    """Whether it is described below the table, because there are many of its kind."""
    return anomaly in CYCLES or anomaly.startswith(NO_ORDER)


def test_the_table_of_histories_has_all_that_is_judged() -> None:
    table = (ROOT / "docs" / "histories.md").read_text(encoding="utf-8").split("\n## ")[0]
    rows = {line.split("`")[1]: line.split("|") for line in table.splitlines() if line.startswith("| `")}
    assert set(rows) == set(workloads())
    for name, judged in workloads().items():
        _, _, operations, options, anomalies, module, _ = rows[name]
        settings = [field.name for field in dataclasses.fields(judged.settings_type)]
        assert set(re.findall(r"`([\w-]+)`", operations)) >= {f for f in judged.functions if f != "txn"}
        assert {option.partition("=")[0] for option in re.findall(r"`([\w=-]+)`", options)} >= set(settings)
        named = {re.sub(r" \(.*", "", anomaly.strip()) for anomaly in anomalies.split(",")} - {"cycles"}
        assert named == {anomaly for anomaly in judged.anomalies if not is_below(anomaly)}
        assert (ROOT / module.split("`")[1]).exists()


def test_a_run_that_names_no_workload_has_the_first_that_its_system_serves_or_the_one_that_it_prefers() -> None:
    assert registry.usual_workload("rocketmq") == "log"
    assert registry.usual_workload("etcd") == "register"
    with pytest.raises(UsageError, match="unknown system 'kafka'; known are: "):
        registry.usual_workload("kafka")
