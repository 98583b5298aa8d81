"""`stormproof new`: the skeleton of an adapter for a system of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from stormproof.cli.options import console_of, example
from stormproof.session.skeleton import Node, write_skeleton

EXAMPLES = """
stormproof new my-store
stormproof new my-store --directory ~/trials/my-store
stormproof new my-store --command
"""


@click.command("new", epilog=example(EXAMPLES))
@click.argument("system")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The directory to make; there must be none yet.  [default: named as SYSTEM]",
)
@click.option(
    "--command",
    "node",
    is_flag=True,
    flag_value=Node.COMMAND,
    type=click.UNPROCESSED,
    default=Node.PYTHON,
    help="Nodes run a command from Debian packages in containers, instead of a Python program that runs everywhere.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def command(system: str, directory: Path | None, node: Node, as_json: bool) -> int:
    """Write the skeleton of an adapter for SYSTEM: a package of its own that runs at once.

    It has a program (or a command in an image), a client with its table of errors, readiness, roles, a planted bug
    and a test. docs/your-own-system.md goes on from there.
    """
    made = directory or Path(system)
    files = write_skeleton(system, node, made)
    where = ["--environment", "docker"] if node is Node.COMMAND else []
    storm = ["stormproof", "run", system, *where, "--workload", "register", "--nemesis", "kill all every 10 for 2"]
    lines = [["pip", "install", "-e", str(made)], storm, [*storm, "--mutant", "forgets"], ["python", "-m", "pytest"]]
    following = [shlex.join([*line, str(made)] if line[0] == "python" else line) for line in lines]
    console = console_of(as_json, False)
    console.say(f"made      {made}: {', '.join(files)}")
    for number, line in enumerate(following):
        console.say(f"{'' if number else 'next':<10}{line}")
    console.result({"system": system, "directory": str(made), "files": list(files), "next": following})
    return 0
