"""`python -m stormproof`: the command, where its script is not on PATH."""

from __future__ import annotations

from stormproof.command import main

main()
