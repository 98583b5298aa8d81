"""Locks that may be lost unseen: acquire, whose result is a token greater than all before, and release by that token.

A lease ends without its holder's knowledge, so another client may acquire the lock before it was released. Actions
under the lock name its token: once a client has a newer token, nothing is done under an older one.
"""

from __future__ import annotations

from checkers.api.evidence import Evidence
from checkers.linearizable.model import ANYTHING, INDEFINITE, Beginning, Call, Model, State, Value, always, repeating


def _leased_lock(state: State, call: Call) -> list[tuple[State, Value]]:
    """State: the newest token. An indefinite acquire is left out: that it got a token would only forbid more, and no
    client knows the token unless the answer is still to come."""
    if call.f == "acquire":
        if call.result is INDEFINITE:
            return [(state, ANYTHING)]
        return [(call.result, ANYTHING)] if isinstance(call.result, int) and call.result > state else []
    return [(state, ANYTHING)] if call.argument == state else []


def _is_token(value: Value) -> bool:
    return type(value) is int and value >= 0


MODEL = Model(
    name="leased-lock",
    initial=0,
    functions=("acquire", "release"),
    apply=_leased_lock,
    begins=Beginning(
        accepts=_is_token, expected="the newest token given away, an integer of at least 0", state=lambda token: token
    ),
    repeats=repeating("release"),
    is_prefix_closed=False,
    evidence=always(Evidence(f="release"), Evidence(f="acquire", at_least=2)),
)
