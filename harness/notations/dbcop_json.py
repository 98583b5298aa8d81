"""The JSON of dbcop: sessions of transactions, bare or as `data` beside what they were generated with.

    [[{"events": [{"Write": {"variable": 0, "version": 1}}, {"Read": {"variable": 1, "version": null}}],
       "committed": true}]]

Its first edition wrote {"write": true, "variable": 0, "value": 1, "success": true} for an event, and "success" for
"committed". Registers begin with 0, or with what `null` shows.
"""

from __future__ import annotations

import json
import re
from typing import Any

from harness.jepsen.source import BrokenText
from harness.notations.sessions import Access, Sessions, SessionTransaction

_SESSIONS = re.compile(rb'\s*\[\s*\[\s*(?:\]\s*,\s*\[\s*)*\{\s*"(?:events|committed|success)"')
_GENERATED = re.compile(rb'\s*\{\s*"params"\s*:\s*\{\s*"id"')


def looks_so(head: bytes) -> bool:
    return _SESSIONS.match(head) is not None or _GENERATED.match(head) is not None


def parse(text: bytes) -> Sessions:
    """Raises BrokenText."""
    try:
        data = json.loads(text)
        sessions = data["data"] if isinstance(data, dict) else data
        of = [[_transaction(one) for one in session] for session in sessions]
    except RecursionError:
        raise BrokenText(0, "brackets are nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BrokenText(0, f"no JSON: {error.msg}", fault=len(error.doc[: error.pos].encode())) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenText(0, f"no sessions of dbcop: {error!r}") from None
    return Sessions(of).beginning_with(0)


def _transaction(data: dict[str, Any]) -> SessionTransaction:
    committed = data.get("committed", data.get("success"))
    if not isinstance(committed, bool):
        raise ValueError("a transaction says whether it was `committed`")
    accesses = [_access(event) for event in data["events"] if event.get("success", True)]
    return SessionTransaction(accesses=accesses, committed=committed)


def _access(event: dict[str, Any]) -> Access:
    if "variable" in event:
        kind, what, value = ("Write" if event["write"] else "Read"), event, event["value"]
    else:
        ((kind, what),) = event.items()
        value = what["version"]
    key = what["variable"]
    if kind not in ("Read", "Write") or type(key) not in (int, str) or type(value) not in (int, type(None)):
        raise ValueError(f"no event: {json.dumps(event)[:80]}")
    if kind == "Write" and value is None:
        raise ValueError("a write has a version")
    return Access(writes=kind == "Write", key=key, value=value)
