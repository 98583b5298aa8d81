"""`stormproof completion`: the script that makes a shell complete this command, and the answers to what it asks.

The script calls the command again with what was typed so far (click's protocol); `answer` prints what can follow.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    shell_complete,
)

from stormproof.cli.options import example
from stormproof.cli.program import ASKED_TO_COMPLETE, PROGRAM
from stormproof.cli.usage import OneOf
from stormproof.session.output_file import STANDARD_OUTPUT, write

SHELLS = ("bash", "zsh", "fish")

EXAMPLES = """
source <(stormproof completion bash)
stormproof completion bash >> ~/.bashrc
stormproof completion zsh > "${fpath[1]}/_stormproof"
stormproof completion fish > ~/.config/fish/completions/stormproof.fish
"""


@click.command("completion", epilog=example(EXAMPLES))
@click.argument("shell", type=OneOf("shell", SHELLS))
def command(shell: str) -> int:
    """Print the script that makes SHELL complete commands, options and names: bash (4.4 or newer), zsh, fish.

    Completed are systems, workloads, nemeses (after a comma as well, and the words of a sentence after its quote),
    mutants, environments, suites, run directories, models, and the keys of --set.
    """
    completing = get_completion_class(shell)
    assert completing is not None
    script = completing(click.Command(PROGRAM), {}, PROGRAM, ASKED_TO_COMPLETE)
    write(STANDARD_OUTPUT, [script.source_template % script.source_vars(), "\n"])
    return 0


def answer(group: click.Command) -> int:
    """Print what can follow what was typed. Nothing goes to standard error, whatever fails; returns the exit code."""
    with _silent_errors():
        try:
            typed = os.environ.get("COMP_WORDS", "").split()
            return shell_complete(group, {"obj": typed}, PROGRAM, ASKED_TO_COMPLETE, os.environ[ASKED_TO_COMPLETE])
        except (Exception, KeyboardInterrupt):  # noqa: BLE001  # a traceback has no place between two keys; nothing is offered
            return 1


@contextlib.contextmanager
def _silent_errors() -> Iterator[None]:
    """Also for libraries that write to the file descriptor."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


class Bash(BashComplete):
    """click's, but `--option=value` and `key=` can be completed: bash takes words apart at `=`."""

    source_template: ClassVar[str] = """\
%(complete_func)s() {
    local type value
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            plain) COMPREPLY+=("$value"); [[ $value == *= ]] && compopt -o nospace ;;
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
        esac
    done < <(IFS=$'\\n'; exec 2>/dev/null
             env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        arguments, begun = super().get_completion_args()
        words: list[str] = []
        joins = False
        for word in (*arguments, begun):
            if words and word and (joins or word == "="):
                words[-1] += word
            else:
                words.append(word)
            joins = word == "="
        return words[:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        """Only what comes after the last `=` of the word, which is all that bash replaces."""
        before, equals, _ = incomplete.rpartition("=")
        found = super().get_completions(args, incomplete)
        return [CompletionItem(item.value.removeprefix(f"{before}{equals}"), type=item.type) for item in found]


add_completion_class(Bash)
