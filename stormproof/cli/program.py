"""The command's name, and the environment variable by which a shell's script asks it what can follow."""

from __future__ import annotations

PROGRAM = "stormproof"
ASKED_TO_COMPLETE = "_STORMPROOF_COMPLETE"
