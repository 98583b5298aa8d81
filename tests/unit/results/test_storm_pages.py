"""The page of a storm: few things at first, the others on demand, all of them bounded, and markup shown as text."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from results.lamport.diagram import diagram
from results.lamport.page import page
from results.lamport.story import MOST_SHOWN, NEEDED, Band, Message, Moment, Story, Thing, chosen, lines_of

SECOND = 1_000_000_000
SVG = "{http://www.w3.org/2000/svg}"


def moment(time_s: float, *, line: str = "b1", label: str = "x", weight: int = 5) -> Moment:
    return Moment(line=line, time_ns=round(time_s * SECOND), label=label, sentence=f"said {label}", weight=weight)


def message(sent_s: float, received_s: float | None) -> Message:
    received_ns = None if received_s is None else round(received_s * SECOND)
    return Message(
        source="b1", target="c1", time_ns=round(sent_s * SECOND), received_ns=received_ns, label="7 bytes", weight=3
    )


def band(from_s: float, until_s: float) -> Band:
    times = {"time_ns": round(from_s * SECOND), "until_ns": round(until_s * SECOND)}
    return Band(
        line="c1", label="killed", colour="--kill", sentence="was killed", after="came back", weight=NEEDED, **times
    )


def story(*things: Thing, title: str = "lost") -> Story:
    return Story(
        title=title, because=("gone",), command="stormproof replay x", schedule=(), lines=("b1", "c1"), things=things
    )


def drawn(*things: Thing) -> ElementTree.Element:
    return ElementTree.fromstring(diagram(things, ("b1", "c1"), named="<all>"))


def test_what_matters_most_is_chosen_and_comes_in_order_of_time() -> None:
    things = [moment(9, weight=2), moment(1, weight=9), moment(5, weight=9), moment(3, weight=1)]
    assert [thing.time_ns // SECOND for thing in chosen(things, 3, least=2)] == [1, 5, 9]
    assert [thing.time_ns // SECOND for thing in chosen(things, 1, least=0)] == [1]
    assert lines_of(things, ("c1", "b1", "b2")) == ("b1",)


def test_time_runs_down_and_order_is_kept() -> None:
    svg = drawn(moment(1), message(2, 2.5), moment(1000), moment(1000.001))
    heights = [float(circle.get("cy", "")) for circle in svg.iter("circle")]
    (line,) = [one for one in svg.iter("line") if one.get("class") is None]
    assert heights == sorted(heights) and len(set(heights)) == 3
    assert heights[0] < float(line.get("y1", "")) < float(line.get("y2", "")) < heights[1]
    assert heights[2] < 300, "a long quiet takes little room"


def test_labels_at_one_instant_stand_below_each_other() -> None:
    svg = drawn(band(1, 4), *(moment(1, line="c1", label=f"label {n}") for n in range(3)))
    labels = [text for text in svg.iter("text") if text.get("class") == "label"]
    assert len({text.get("y") for text in labels}) == 4


def test_a_message_that_never_arrived_ends_in_a_cross() -> None:
    assert len(list(drawn(message(1, 2)).iter("polygon"))) == 1
    lost = drawn(message(1, None))
    assert len(list(lost.iter("polygon"))) == 0 and len(list(lost.iter("path"))) == 1


def test_more_than_is_shown_is_there_on_demand() -> None:
    few = page(story(*(moment(n) for n in range(MOST_SHOWN))))
    assert "<details>" not in few and few.count("<circle") == MOST_SHOWN
    many = page(story(*(moment(n) for n in range(5_000)), band(3, 4)))
    shown, _, rest = many.partition("<details>")
    assert shown.count("<circle") + shown.count("<rect") == MOST_SHOWN
    assert "All 600 events and messages, without the 4401 that tell least" in rest
    assert len(many) < 1_000_000


def test_the_narrative_tells_ends_as_well_as_beginnings() -> None:
    _, _, text = page(story(band(1, 4), moment(2))).partition("What each believed")
    at = [text.index(words) for words in ("was killed", "said x", "came back")]
    assert at == sorted(at)


def test_a_schedule_keeps_its_lines() -> None:
    text = page(replace(story(moment(1)), schedule=("1 for 2 kill b1 [kill 0]", "3 for 1 <b>")))
    assert '<pre class="schedule">1 for 2 kill b1 [kill 0]\n3 for 1 &lt;b&gt;</pre>' in text


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", '"><img src=x>', "a\x1b[31mb"])
def test_markup_is_text(hostile: str) -> None:
    text = page(story(moment(1, label=hostile), moment(2, line="c1", label=hostile), title=hostile))
    assert "<script>" not in text and "<img" not in text and "\x1b" not in text
