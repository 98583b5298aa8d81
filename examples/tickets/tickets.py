"""A model of one's own: a dispenser of tickets. `take` gives the next number, `last` says which was given last.

PYTHONPATH=examples/tickets stormproof check tickets.edn --model tickets:TICKETS
"""

from stormproof import Model, always, any_ok, reading


def tickets(state, call):
    """The states that may follow, each with the result that the call then has."""
    return [(state + 1, state + 1)] if call.f == "take" else [(state, state)]


TICKETS = Model(
    name="tickets",
    initial=0,
    functions=("take", "last"),
    apply=tickets,
    does=reading("last"),
    evidence=always(*any_ok("take", "last")),
)
