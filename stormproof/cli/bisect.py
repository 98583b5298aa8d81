"""`stormproof bisect`: since which commit a storm fails."""

from __future__ import annotations

from pathlib import Path

import click

from harness.arrow import start_arrow
from harness.errors import UsageError
from stormproof.cli.console import Tone
from stormproof.cli.exit_code import ExitCode
from stormproof.cli.options import console_of, example, output_options

EXAMPLES = """
stormproof bisect lost.storm.toml v1.2..HEAD
stormproof bisect lost.storm.toml 1504d68..main --progress
"""


@click.command("bisect", epilog=example(EXAMPLES))
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("revisions", metavar="GOOD..BAD")
@output_options
def command(file: Path, revisions: str, as_json: bool, progress: bool | None) -> int:
    """Find the commit since which the storm of FILE fails, for a system that lies in the git checkout around the
    current directory: it held at the revision GOOD and fails at BAD.

    Each commit is tried apart, with the harness as it is; nothing in the checkout is touched. The exit code is 0 where
    the commit is found, 2 where several could not be tried and remain.
    """
    good, dots, bad = revisions.partition("..")
    if not dots or not good or not bad or bad.startswith("."):
        raise UsageError(f"the revisions are two with two dots between them, as in v1.2..HEAD, got {revisions!r}")
    start_arrow()
    # Not before: help needs nothing of what runs and judges.
    from stormproof.search.bisection import since, trier
    from stormproof.search.checkout import Checkout
    from stormproof.search.storm_file import load_storm

    storm, parts = load_storm(file)
    checkout = Checkout.around(Path.cwd())
    console = console_of(as_json, progress)
    found = since(checkout, good, bad, trier(storm, parts, checkout, bad), console.progress)
    is_one = len(found.commits) == 1
    code = ExitCode.VALID if is_one else ExitCode.UNKNOWN
    for place, commit in enumerate(found.commits):
        head = "since    " if is_one else "since one" if place == 0 else "         "
        console.say(f"{head} {commit[:12]} {checkout.subject(commit)}", None if is_one else Tone.DOUBT)
    if not is_one:
        console.say("          those between could not be tried; --progress says why")
    console.say(f"tried     {found.tried} commits")
    console.result(
        {"storm": str(file), "since": list(found.commits), "tried": found.tried, "exit_code": int(code)},
    )
    return code
