"""`stormproof cleanup`: what a killed run left behind, found by its label and removed."""

from __future__ import annotations

import importlib

import click

from harness.cli.options import console_of, example
from harness.errors import HarnessError

WORLDS = ("docker",)
"""Environments that may leave something behind; the simulator lives in its process and dies with it."""

EXAMPLES = """
stormproof cleanup
stormproof cleanup --json
"""


@click.command("cleanup", epilog=example(EXAMPLES))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> int:
    """Remove containers and networks of runs that were killed before they could tidy up."""
    console = console_of(as_json, False)
    told = {}
    for world in WORLDS:
        told[world] = _clean(world)
        console.say(f"{world}: {told[world]}")
    console.result(told)
    return 0


def _clean(world: str) -> str:
    try:
        module = importlib.import_module(f"harness.environments.{world}")
    except ModuleNotFoundError as missing:
        return f"not available here: {missing}"
    try:
        removed = module.cleanup()
    except HarnessError as error:
        return f"nothing done: {error}"
    if not removed:
        return "nothing was left behind"
    return str(removed) if isinstance(removed, (int, str)) else ", ".join(str(item) for item in removed)
