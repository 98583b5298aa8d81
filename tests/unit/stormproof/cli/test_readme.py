"""What the README and the guide show is what there is."""

from __future__ import annotations

import base64
import dataclasses
import re
import shlex
from pathlib import Path

import click
import pytest

from checkers.transactions.elle.graph.cycles import NAMES as CYCLES
from checkers.transactions.meanings import NO_ORDER
from harness.environments.ssh.inventory import parse_inventory
from harness.errors import UsageError
from harness.record.scenario import Scenario, nemesis_names
from stormproof.cli import check, run
from stormproof.cli.exit_code import ExitCode
from stormproof.cli.main import group
from stormproof.session import registry
from stormproof.session.check_spec import of_model
from stormproof.session.registry import workloads
from stormproof.session.suite_file import parse_suite, shipped
from tests.pages import ALL, FENCED, GUIDE, README, TEXTS, code, commands_of, lines_of_blocks, rows

ROOT = Path(__file__).resolve().parents[4]
OWN_SYSTEMS = {"rocketmq", "dledger", "bookkeeper", "cmq"}
DOCUMENTS = [*TEXTS, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "systems").glob("*.md"))]
WITHOUT_MORE = ("list", "doctor", "cleanup")
"""Commands that are whole without an argument; others are also named without any."""


def test_the_readme_is_short_and_leads_to_every_page_of_the_guide() -> None:
    assert len(TEXTS[README].split()) <= 900
    index = ROOT / "docs" / "guide" / "README.md"
    for page in GUIDE:
        if page != index:
            assert f"(docs/guide/{page.name})" in TEXTS[README], page.name
            assert len(re.findall(rf"^- \[{page.name}\]\({page.name}\): .", TEXTS[index], flags=re.MULTILINE)) == 1


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_no_line_is_too_wide_but_rows_of_tables(page: Path) -> None:
    assert [line for line in TEXTS[page].splitlines() if len(line) > 120 and not line.startswith("|")] == []


def test_the_first_test_is_the_example_that_runs_and_fits_in_twenty_lines() -> None:
    first, *_ = re.findall(r"```python\n(.*?)```", ALL, flags=re.DOTALL)
    assert first in TEXTS[README]
    example = (ROOT / "examples" / "test_losing_the_master.py").read_text(encoding="utf-8")
    assert first in example
    assert len(first.strip().splitlines()) <= 20


def test_the_checker_of_ones_own_is_the_one_that_runs_and_fits_in_fifteen_lines() -> None:
    _, shown = re.findall(r"```python\n(.*?)```", ALL, flags=re.DOTALL)
    standard, own, checker = re.split(r"\n{2,}", shown)
    assert own.startswith("from stormproof import ") and standard.startswith("from collections.abc import ")
    assert checker in (ROOT / "tests" / "command_line" / "remembered.py").read_text(encoding="utf-8")
    assert len(checker.splitlines()) <= 15
    exec(compile(shown, "guide", "exec"), {})


def test_every_command_shown_is_understood() -> None:
    calls = commands_of("stormproof")
    assert len(calls) >= 70
    assert len(re.findall(r"^\| `stormproof ", TEXTS[README], flags=re.MULTILINE)) == 6
    for line in calls:
        _, name, *arguments = shlex.split(line)
        command = group.get_command(click.Context(group), name)
        assert command is not None, line
        if arguments or name in WITHOUT_MORE:
            command.make_context(name, arguments).close()
    assert {call.split()[1] for call in calls} == set(group.list_commands(click.Context(group)))


def test_every_option_named_is_one_of_some_command() -> None:
    context = click.Context(group)
    commands = [group, *(group.get_command(context, name) for name in group.list_commands(context))]
    parameters = [parameter for command in commands if command for parameter in command.params]
    options = {word for parameter in parameters for word in (*parameter.opts, *parameter.secondary_opts)}
    named = [words.split()[0].partition("=")[0] for words in code(ALL) if words.startswith("--")]
    assert len(named) >= 50
    assert set(named) - {"--help"} <= options


def test_every_target_of_make_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = [call.split()[1] for call in commands_of("make")]
    assert len(named) >= 10
    assert set(named) <= targets
    assert {"make run", "make test"} <= set(lines_of_blocks("make"))


def test_every_run_shown_names_what_there_is() -> None:
    runs = [shlex.split(line)[2:] for line in commands_of("stormproof") if line.startswith("stormproof run ")]
    assert len(runs) >= 19
    for words in runs:
        with run.command.make_context("run", words) as context:
            options = context.params
        if options["system"] in ("memo", "counter"):  # in examples/, and not installed here
            continue
        if options["environment"] == "ssh":  # the inventory that it names is not here
            options["environment"] = "simulated"
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


def test_the_schedule_shown_can_be_run() -> None:
    (block,) = [block for kind, block in FENCED.findall(ALL) if not kind and "[partition 0]" in block]
    lines = tuple(block.splitlines())
    assert len(lines) == 3
    registry.resolve(Scenario(system="rocketmq", workload="log", environment="simulated", schedule=lines))


def test_the_inventory_shown_is_one() -> None:
    (block,) = [block for kind, block in FENCED.findall(ALL) if kind == "toml" and "[hosts.m1]" in block]
    public = base64.b64encode(b"".join(len(part).to_bytes(4, "big") + part for part in (b"ssh-ed25519", bytes(32))))
    block = block.replace("AAAA…", public.decode()).replace('key = "~/.ssh/storm"', "agent = true")
    (host,) = parse_inventory(block, "hosts.toml").hosts.values()
    assert (host.user, host.address, host.node) == ("storm", "192.0.2.11", "b1")


def test_every_model_that_a_check_names_is_one() -> None:
    calls = [shlex.split(line)[1:] for line in commands_of("stormproof")]
    assert {"check", "export", "verify"} <= {name for name, *_ in calls}
    models = 0
    for name, *words in calls:
        if name == "check" and words:
            with check.command.make_context(name, words) as context:
                model = context.params["model"]
            if model:
                models += 1
                of_model(model, initial=context.params["initial"], failed_cas=context.params["failed_cas"])
    assert models >= 2


def test_the_suite_makes_as_many_scenarios_as_it_is_said_to() -> None:
    blocks = [block for block in re.findall(r"```toml\n(.*?)```", ALL, flags=re.DOTALL) if "[[matrix]]" in block]
    (count,) = re.findall(r"runs its (\d+) scenarios", ALL)
    assert len(parse_suite(blocks[0], "before-merge.toml").scenarios) == int(count)
    for block in blocks:
        for scenario in parse_suite(block, "shown.toml").scenarios:
            registry.environment_of(scenario, registry.resolve(scenario))


def test_the_tables_of_the_guide_name_all_that_there_is() -> None:
    assert sorted(rows("faults.md", "package")) == sorted(registry.names("nemeses"))
    assert sorted(rows("workloads.md", "workload")) == sorted(workloads())
    assert sorted(rows("systems.md", "system")) == sorted(set(registry.names("systems")) - OWN_SYSTEMS)
    assert sorted(rows("suites.md", "suite")) == sorted(shipped())


def test_every_exit_code_is_in_the_table() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", ALL, flags=re.MULTILINE)] == sorted(ExitCode)


def anchors(page: Path) -> set[str]:
    """Of its headings, as they are made by those who show such pages."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_it_points_at_is_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


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
    listed = re.findall(r"^- \[\d{4}\]\(((?:\w+/)?\d{4}-[\w-]+\.md)\)", text, flags=re.MULTILINE)
    assert sorted(listed) == sorted(str(path.relative_to(folder)) for path in folder.rglob("0*.md"))
    pages = re.findall(r"^\*\*\[[^\]]+\]\(\.\./lab/([\w-]+\.md)\)\*\*$", text, flags=re.MULTILINE)
    figures = re.findall(r"\]\(\.\./docs/lab/([\w-]+\.md)\)", (ROOT / "benchmarks" / "README.md").read_text("utf-8"))
    assert sorted({*pages, *figures}) == sorted(path.name for path in (ROOT / "docs" / "lab").iterdir())


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
