"""A proxy takes a client for living as long as its telemetry stream is open.

The stream of one that has vanished without a word is open for ever, and what the client held is renewed for ever.
Broken rule: who is silent is gone.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.proxy.parts import ProxyParts
from system_under_test.rocketmq.proxy.sessions import Session, Sessions


class Trusting(Sessions):
    def is_silent(self, session: Session, now_ns: int) -> bool:
        return session.stream is None and super().is_silent(session, now_ns)


MUTANT = Mutant(
    name="stream-keeps-session",
    breaks="what a vanished client held comes again",
    parts=(ProxyParts(sessions=Trusting),),
)
