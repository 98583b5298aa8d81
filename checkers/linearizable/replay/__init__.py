"""Replays a certificate: a program so simple that it can be believed, which shares no code with the checker.

    python -m checkers.linearizable.replay HISTORY.parquet CERTIFICATE [MODEL] [--initial JSON] [--failed-cas answer]

A certificate has an order for each key: operations, named by the indices of their invocations, as they took effect.
It holds if every operation that completed is in it once and none that failed is, none stands behind one that began
after it had ended, and a plain object driven through the order returns to each caller what the history recorded. Cost:
O(n) steps, each as cheap as the object's own.

The first line of a certificate names the model and its options; what is given beside it must say the same. One without
that line, as older versions wrote it, needs MODEL.

Exit codes: 0 all orders hold, 3 refuted, with the reason, 254 wrong usage or a file that is none of what is needed,
255 this program failed.
"""

from __future__ import annotations

from checkers.linearizable.replay.files import plain
from checkers.linearizable.replay.objects import OBJECTS
from checkers.linearizable.replay.orders import fault

__all__ = ["OBJECTS", "fault", "plain"]
