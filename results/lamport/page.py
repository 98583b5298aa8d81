"""The page of a storm: what is broken, the diagram, and what each node believed and when. One file, no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources

from results.lamport.diagram import diagram, seconds
from results.lamport.story import MOST_KEPT, MOST_SHOWN, TELLING, Band, Story, Thing, chosen, lines_of
from results.report.escaped import escape


def page(story: Story) -> str:
    """A whole HTML document, far below a megabyte: the number of things in it is bounded."""
    shown = chosen(story.things, MOST_SHOWN, least=TELLING)
    kept = chosen(story.things, MOST_KEPT, least=0)
    because = "".join(f"<li>{escape(sentence)}</li>" for sentence in story.because)
    schedule = "\n".join(map(escape, story.schedule)) or "no faults"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(story.title)}</title>
<style>
{_text("report", "page.css")}
{_text("lamport", "lamport.css")}
</style>
</head>
<body>
<main>
<header class="invalid">
<div class="verdict"><span class="badge">INVALID</span><h1>{escape(story.title)}</h1></div>
<ul class="reasons">{because}</ul>
<pre class="schedule">{schedule}</pre>
<div class="replay"><code>{escape(story.command)}</code></div>
</header>
<section>
<h2>Who did what, and when</h2>
<p class="muted small">A line for each node and client; time runs down, in seconds, a long quiet drawn shorter than it
was. Arrows are messages, bars are faults and operations; point at something to read all of it.</p>
{_scrolled(shown, story, f"The {len(shown)} things that matter most")}
{_rest(shown, kept, story)}
</section>
<section>
<h2>What each believed, and when</h2>
{_narrative(shown)}
{_more(shown, kept)}
</section>
</main>
</body>
</html>
"""


def _text(folder: str, name: str) -> str:
    return (resources.files("results") / folder / name).read_text(encoding="utf-8")


def _scrolled(things: Sequence[Thing], story: Story, named: str) -> str:
    return f'<div class="scrolled">{diagram(things, lines_of(things, story.lines), named=named)}</div>'


def _rest(visible: Sequence[Thing], kept: Sequence[Thing], story: Story) -> str:
    if len(kept) == len(visible):
        return ""
    left = len(story.things) - len(kept)
    without = f", without the {left} that tell least" if left else ""
    summary = f"All {len(kept)} events and messages{without}"
    return f"<details><summary>{summary}</summary>{_scrolled(kept, story, summary)}</details>"


def _narrative(things: Sequence[Thing]) -> str:
    rows = "".join(
        f'<li><span class="at">{seconds(time_ns)} s</span> <b>{escape(line)}</b> {escape(sentence)}</li>'
        for time_ns, line, sentence in sorted(_sentences(things), key=lambda sentence: sentence[0])
    )
    return f'<ol class="narrative">{rows}</ol>'


def _more(visible: Sequence[Thing], kept: Sequence[Thing]) -> str:
    visible_count, all_ = len(list(_sentences(visible))), len(list(_sentences(kept)))
    if visible_count == all_:
        return ""
    return f"<details><summary>All {all_} sentences</summary>{_narrative(kept)}</details>"


def _sentences(things: Sequence[Thing]) -> Iterator[tuple[int, str, str]]:
    for thing in things:
        line = thing.lines[0]
        if thing.sentence:
            yield thing.time_ns, line, thing.sentence
        if isinstance(thing, Band) and thing.after:
            yield thing.until_ns, line, thing.after
