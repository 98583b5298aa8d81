"""The arrows of the architecture, kept by reading the code: which package may import which and do input and output."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("stormproof", "harness", "nemesis", "workloads", "checkers", "system_under_test", "results")

pytestmark = pytest.mark.xdist_group("layers")  # each worker would read all modules

# Rooms of the harness that import the standard library alone.
LEAVES = (
    "harness.arrow",
    "harness.bounds",
    "harness.client_names",
    "harness.errors",
    "harness.nearest",
    "harness.path_name",
    "harness.printable",
)
LEAVES += ("harness.reading", "harness.lifetime")
# The record may be imported by all, and imports none of them.
RECORD = ("harness.record", "harness.operation")
# What any system of ours is made of: these rooms know none of those systems.
COMMON_TO_OUR_SYSTEMS = tuple(
    f"system_under_test.{room}"
    for room in ("grpc", "metadata", "node", "raft", "remoting", "replicated", "runtime", "storage")
)
# Package -> prefixes of the project's own modules that it may import. The longest matching package decides.
ARROWS = {
    "stormproof": PACKAGES,
    "harness": ("harness",),
    "harness.record": (*RECORD, *LEAVES),
    "harness.lifetime": ("harness.lifetime",),
    "nemesis": ("nemesis", "harness"),
    "workloads": ("workloads", "harness", "checkers"),
    "workloads.systems": ("workloads", "harness", "checkers", "system_under_test"),
    "checkers": ("checkers", *RECORD, "harness.compiled", *LEAVES),
    "checkers.linearizable.replay": ("checkers.linearizable.replay", "harness.printable"),
    "checkers.transactions.verify": ("checkers.transactions.verify", "harness.printable"),
    "results": ("results", *RECORD, "checkers.api.verdict", "checkers.api.anomaly", *LEAVES),
    "system_under_test": COMMON_TO_OUR_SYSTEMS,
}
# All other rooms beside those are systems: each may import itself as well, and no other one.
OUR_SYSTEMS = {f"system_under_test.{path.parent.name}" for path in (ROOT / "system_under_test").glob("*/__init__.py")}
ARROWS |= {system: (system, *COMMON_TO_OUR_SYSTEMS) for system in OUR_SYSTEMS - {*COMMON_TO_OUR_SYSTEMS}}
# Beneath brokers there may be a group of DLedger.
ARROWS["system_under_test.rocketmq"] += ("system_under_test.dledger",)
# The command line is used by the command alone.
THE_COMMAND = ("stormproof.cli", "stormproof.command")
WORLD_MODULES = ("time", "socket", "secrets", "threading", "multiprocessing", "subprocess", "selectors")
WORLD_CALLS = ("open", "asyncio.sleep", "asyncio.wait_for", "asyncio.timeout", "asyncio.open_connection", "os.open")
WORLD_CALLS += ("asyncio.start_server", "asyncio.create_task", "asyncio.ensure_future", "os.urandom", "uuid.uuid4")
THE_REAL_HOST = ("system_under_test.runtime.real", "system_under_test.runtime.real_disk")


def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


LONGEST_FUNCTION_LINES = 60


@dataclass(frozen=True)
class Reading:
    """What a module is asked for; it is parsed once, and its tree is not kept."""

    imports: list[tuple[int, str]]
    """(line, module) of every import, also of those inside functions."""
    long_functions: list[str]
    touches: list[str]
    """The imports and calls that do input, output, time or randomness without the host."""


@cache
def reading(source: str) -> Reading:
    nodes = list(ast.walk(ast.parse(source)))
    imported = list(_imports(nodes))
    return Reading(imported, list(_long_functions(nodes)), list(_touches(nodes, imported)))


def imports(source: str) -> list[tuple[int, str]]:
    return reading(source).imports


def _long_functions(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LONGEST_FUNCTION_LINES:
                yield f"line {node.lineno}: {node.name} has {lines} lines"


def _imports(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import hides where it goes"
            module = node.module or ""
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}" if f"{module}.{alias.name}" in MODULES else module


def imported(source: str) -> set[str]:
    """The project's own modules that a module imports, at once, in functions or for types alone."""
    return {module for _, module in imports(source) if module in MODULES}


def cycles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules in which each imports every other one, by way of others or not."""
    reached: dict[str, set[str]] = {}
    for module in arrows:
        reached[module], waiting = set(), [module]
        while waiting:
            further = arrows[waiting.pop()] - reached[module]
            reached[module] |= further
            waiting += sorted(further)
    groups = {tuple(sorted(m for m in targets if module in reached[m])) for module, targets in reached.items()}
    return sorted(list(group) for group in groups if len(group) > 1)


def under(module: str, prefixes: tuple[str, ...]) -> bool:
    return any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes)


def allowed(module: str) -> tuple[str, ...]:
    return ARROWS[max((package for package in ARROWS if under(module, (package,))), key=len)]


def violations(name: str, source: str) -> list[str]:
    return [
        f"{name}:{line} imports {module}"
        for line, module in imports(source)
        if under(module, PACKAGES)
        and (not under(module, allowed(name)) or (under(module, ("stormproof.cli",)) and not under(name, THE_COMMAND)))
    ]


def _touches(nodes: list[ast.AST], imported: list[tuple[int, str]]) -> Iterator[str]:
    yield from (f"line {line}: import {module}" for line, module in imported if under(module, WORLD_MODULES))
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            yield f"line {node.lineno}: from random"
        if isinstance(node, ast.Call):
            # `random.Random` may be named as a type, it may not be called.
            called = dotted(node.func)
            if called in WORLD_CALLS or called.startswith("random."):
                yield f"line {node.lineno}: {called}()"


def dotted(node: ast.expr) -> str:
    """`asyncio.sleep` of what reads so; empty where it is no name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def sources(*prefixes: str) -> Iterator[tuple[str, str]]:
    """(module, its text) of all that is under one of these."""
    yield from ((name, path.read_text(encoding="utf-8")) for name, path in MODULES.items() if under(name, prefixes))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_import_follows_the_arrows(package: str) -> None:
    assert [found for name, source in sources(package) for found in violations(name, source)] == []


GENERAL_PARTS = ("nemesis", "harness", "checkers", "results")
NAMES_OF_ONE_SYSTEM = re.compile(
    r"(?<![a-z])(brokers?|controllers?|primary|active-controller|dispensable)(?![a-z])", re.IGNORECASE
)
# Module -> the names that it may use.
EXCEPTIONS = {
    # A field of the events that nodes write, and the column of `node-events.parquet` that holds it: stored formats.
    "harness.record.node_events": ("broker_id", '"broker"', "`broker`"),
    "checkers.replication.reports": ('"broker"',),
    # A file of the kernel.
    "harness.environments.remote.control_groups": ("cgroup.controllers",),
    # What several systems call the node that leads; a figure gives it a colour of its own.
    "results.report.figure": ('"primary"',),
}


def names_of_one_system(name: str, source: str) -> list[str]:
    """The lines with such names. Examples of commands that name the system may use them."""
    for exception in EXCEPTIONS.get(name, ()):
        source = source.replace(exception, "")
    named = [line for line in source.splitlines() if NAMES_OF_ONE_SYSTEM.search(line)]
    return [line for line in named if "stormproof run rocketmq" not in line]


def test_no_general_part_names_groups_or_roles_of_one_system() -> None:
    found = {name: names_of_one_system(name, source) for name, source in sources(*GENERAL_PARTS)}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_name_of_one_system_would_be_found() -> None:
    for line in ('ELECTORS = "controllers"', "report.broker_id", "role == PRIMARY", "'active-controller'"):
        assert names_of_one_system("checkers.log.kernel", line) == [line]
    assert names_of_one_system("harness.record.node_events", "broker_id, brokers") == [", brokers"]
    assert names_of_one_system("checkers.log.kernel", "brokerage") == []


def test_every_exception_is_still_used() -> None:
    for module, names in EXCEPTIONS.items():
        assert all(name in MODULES[module].read_text(encoding="utf-8") for name in names), module


def test_the_system_under_test_needs_hardly_more_than_the_standard_library() -> None:
    for name, source in sources("system_under_test"):
        optional = ("uvloop",) if name in THE_REAL_HOST else ("h2",) if under(name, ("system_under_test.grpc",)) else ()
        for line, module in imports(source):
            top = module.partition(".")[0]
            own = ("system_under_test", *optional)
            assert top in sys.stdlib_module_names or top in own, f"{name}:{line} imports {module}"


def test_only_the_real_host_does_input_and_output() -> None:
    found = {name: reading(source).touches for name, source in sources("system_under_test")}
    assert {name: lines for name, lines in found.items() if lines and name not in THE_REAL_HOST} == {}


def test_no_modules_import_each_other() -> None:
    assert cycles({name: imported(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}) == []


def test_modules_that_import_each_other_would_be_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == [["a", "b", "c"]]
    source = "import harness.run\nif TYPE_CHECKING:\n    import harness.client\ndef f():\n    import harness.seed"
    assert imported(source) == {"harness.run", "harness.client", "harness.seed"}


def test_a_forbidden_import_would_be_found() -> None:
    assert violations("system_under_test.raft.core", "from harness.seed import Seed")
    assert violations("system_under_test.raft.core", "from system_under_test.rocketmq.topic import Topic")
    assert not violations("system_under_test.rocketmq.node", "from system_under_test.raft.core import Raft")
    assert not violations("system_under_test.rocketmq.node", "from system_under_test.rocketmq.topic import Topic")
    assert violations("results.junit", "def late():\n    import harness.run")
    assert violations("checkers.log.kernel", "from harness import scenario")
    assert not violations("checkers.log.kernel", "from harness.record import history")
    assert violations("harness.run", "from stormproof.session import judge")
    assert violations("stormproof.session.engines", "from stormproof.cli.console import remark")
    assert violations("stormproof.scenarios", "from stormproof.cli import main")
    assert not violations("stormproof.command", "from stormproof.cli import main")
    assert violations("checkers.linearizable.replay.orders", "from checkers.linearizable.values import frozen")


def test_verification_shares_with_checking_what_the_guide_says() -> None:
    """Beside the standard library and itself: the two programs, and the command that calls them."""
    page = (ROOT / "docs/guide/transactions.md").read_text(encoding="utf-8")
    tables = page.partition("### What verifying shares with checking")[2].split("|---|---|")[1:]
    rows = ([line.split("|")[1] for line in table.splitlines() if line.startswith("| `")] for table in tables)
    programs, command = (set(re.findall(r"`([^`]+)`", " ".join(named))) for named in rows)
    found = set()
    for name in MODULES:
        if under(name, ("checkers.linearizable.replay", "checkers.transactions.verify")):
            of_module = {module for _, module in imports(MODULES[name].read_text(encoding="utf-8"))}
            found |= {module if module in MODULES else module.partition(".")[0] for module in of_module}
    own = {name for name in found if under(name, ("checkers.linearizable.replay", "checkers.transactions.verify"))}
    assert found - own - sys.stdlib_module_names == programs
    calling = imported(MODULES["stormproof.cli.verify"].read_text(encoding="utf-8"))
    assert {name for name in calling if not under(name, ("stormproof.cli",))} == command


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from random import Random",
        "import random\nrandom.random()",
        "open('f')",
        "import asyncio\nasync def f(): await asyncio.sleep(1)",
    ],
)
def test_input_and_output_without_the_host_would_be_found(source: str) -> None:
    assert reading(source).touches


TRANSACTION_ROOMS = ("model", "history", "elle", "evidence", "orders")


@pytest.mark.parametrize("room", TRANSACTION_ROOMS)
def test_no_room_of_transactions_imports_a_later_one(room: str) -> None:
    later = TRANSACTION_ROOMS[TRANSACTION_ROOMS.index(room) + 1 :]
    above = tuple(f"checkers.transactions.{name}" for name in (*later, "checker", "anomalies"))
    for name in (one for one in MODULES if under(one, (f"checkers.transactions.{room}",))):
        for line, module in imports(MODULES[name].read_text(encoding="utf-8")):
            assert not under(module, above), f"{name}:{line} imports {module}"


def test_no_function_is_longer_than_a_page() -> None:
    found = {name: reading(source).long_functions for name, source in sources(*PACKAGES)}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_long_function_would_be_found() -> None:
    assert reading("def f():\n" + "    pass\n" * 60).long_functions == ["line 1: f has 61 lines"]
    assert reading("def f():\n" + "    pass\n" * 59).long_functions == []


def test_no_two_test_files_have_one_name() -> None:
    """Without packages a test file is known by its name alone: two of one name could not be collected together."""
    files = [path.name for folder in ("tests", "examples") for path in (ROOT / folder).rglob("test_*.py")]
    assert len(files) > 50
    assert sorted({name for name in files if files.count(name) > 1}) == []


def missing_rooms(page: str) -> list[str]:
    """Folders of the tree on the page that are not there: words that end in a slash, beneath those they stand under."""
    tree = page.split("## The rooms")[1].split("```")[1]
    top, room, missing = "", "", []
    for line in tree.strip().splitlines():
        if not line.startswith(" "):
            top, room = line.split("/")[0], ""
        elif line[2] != " ":
            room = line.split("/")[0].strip()
        for word in re.findall(r"([a-z_]+)/(?!\w)", line):
            if not any((ROOT / top / within / word).is_dir() for within in (".", "..", room, "environments")):
                missing.append(f"{top}/{word}")
    return missing


def test_the_rooms_that_the_architecture_shows_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert missing_rooms(page) == []
    assert missing_rooms(page.replace("  notations/ ", "  notation/ ")) == ["harness/notation"]


def folders_of_units() -> Iterator[Path]:
    """As packages would be that mirror them; `tests/rocketmq/unit` is that of the system and of its adapter."""
    units = {"tests/unit": "", "tests/rocketmq/unit": "system_under_test/rocketmq"}
    own = ("ci", "mutation", "adapter")  # of the gate, of the tests' own programs, and of workloads/systems/rocketmq
    for folder, package in units.items():
        for path in (ROOT / folder).rglob("test_*.py"):
            if path.parent.name not in own:
                yield ROOT / package / path.parent.relative_to(ROOT / folder)


def test_tests_of_units_lie_as_the_packages_do() -> None:
    folders = set(folders_of_units())
    assert len(folders) > 50
    assert [str(folder) for folder in sorted(folders) if not folder.is_dir()] == []
