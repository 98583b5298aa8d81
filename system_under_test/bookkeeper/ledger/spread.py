"""Which bookies of an ensemble have yet to hear of the LAC, where no entry carries it to them."""

from __future__ import annotations

from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.ledger.event import LacWritten, Reply, WriteLac


class LacSpread:
    """A bookie is asked by one request at a time, again and again until it has heard of the LAC."""

    def __init__(self) -> None:
        self._carried = NOTHING
        """The greatest LAC that entries carry: their bookies hear of it with them."""
        self._heard: dict[str, int] = {}
        self._asked: dict[str, None] = {}

    def carries(self, lac: int) -> None:
        """An entry that is on its way."""
        self._carried = max(self._carried, lac)

    def writes(self, ensemble: tuple[str, ...], lac: int) -> list[WriteLac]:
        """To those of the ensemble that have not heard of it, if none of the entries on their way carries it."""
        if lac <= self._carried:
            return []
        missing = [each for each in ensemble if each not in self._asked and self._heard.get(each, NOTHING) < lac]
        self._asked.update(dict.fromkeys(missing))
        return [WriteLac(bookie, lac) for bookie in missing]

    def written(self, answer: LacWritten) -> None:
        self._asked.pop(answer.bookie, None)
        if answer.reply is Reply.OK:
            self._heard[answer.bookie] = answer.lac
