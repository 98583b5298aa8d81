"""`stormproof cleanup`: what killed commands left behind, found by whose it was and removed."""

from __future__ import annotations

import importlib

import click

from harness.environments.leftover import Cleaned, Leftover
from harness.lifetime import scratch
from stormproof.cli.console import Console
from stormproof.cli.exit_code import ExitCode
from stormproof.cli.options import console_of, example

CLEANED_ENVIRONMENTS = ("docker",)
"""Those that may leave something behind; the simulator lives in its process and dies with it."""

EXAMPLES = """
stormproof cleanup
stormproof cleanup --inventory hosts.toml
stormproof cleanup --json
"""


@click.command("cleanup", epilog=example(EXAMPLES))
@click.option(
    "--inventory",
    type=click.Path(),
    default="",
    metavar="FILE",
    help="Clean up the machines of this file as well.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(inventory: str, as_json: bool) -> int:
    """Remove containers, networks and temporary directories of commands that were killed before they could tidy up.

    Logs of nodes are brought home into the run's directory before their containers go. What belongs to a process that
    still lives is spared, and so is what belongs to another machine.

    With --inventory, its machines are looked at as well: nodes of runs that are over are ended, networks healed, and
    files removed, also the sources of programs that are kept there from run to run.

    --json prints lists: removed (kind, name), spared and failed (also reason), brought_home (directory), and
    not_looked_at (environment, reason).

    Exit codes: 0 nothing of a killed command is left, 255 something could not be removed or not be looked at.
    """
    console = console_of(as_json, False)
    cleaned = _directories()
    for environment in CLEANED_ENVIRONMENTS:
        cleaned.add(importlib.import_module(f"harness.environments.{environment}").cleanup())
    if inventory:
        cleaned.add(importlib.import_module("harness.environments.ssh").cleanup_machines(inventory))
    _say(cleaned, console)
    code = ExitCode.HARNESS_FAILED if cleaned.failed or cleaned.not_looked_at else ExitCode.VALID
    console.result({**cleaned.to_json(), "exit_code": int(code)})
    return code


def _directories() -> Cleaned:
    cleaned = Cleaned()
    for path in scratch.orphans():
        leftover = Leftover(kind="directory", name=str(path))
        scratch.remove(path)
        if path.exists():
            cleaned.failed[leftover] = "not all of it could be removed; is it another user's, or mounted?"
        else:
            cleaned.removed.append(leftover)
    return cleaned


def _say(cleaned: Cleaned, console: Console) -> None:
    for directory in cleaned.brought_home:
        console.say(f"logs      {directory}")
    for one in cleaned.removed:
        console.say(f"removed   {one}")
    for one, reason in cleaned.spared.items():
        console.say(f"spared    {one}: {reason}")
    for one, reason in cleaned.failed.items():
        console.say(f"FAILED    {one}: {reason}")
    for environment, reason in cleaned.not_looked_at.items():
        console.say(f"FAILED    {environment}: {reason}")
    if not cleaned.removed and not cleaned.failed and not cleaned.not_looked_at:
        console.say("nothing was left behind")
