"""Random histories of groups of consumers, and what is wrong with them by the definitions, operation by operation."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

Row = dict[str, Any]

NEVER = 1 << 60
GROUPS = ("g", "h")
MEMBERS = ("a", "b")


def random_consumption(rng: random.Random, operations: int, *, is_divided: bool) -> list[Row]:
    """Sends, consumption in several hands, commits, crashes; now and then something that no healthy system does."""
    rows: list[Row] = []
    busy: dict[int, Row] = {}
    in_hand: dict[int, tuple[str, str, list[Row]]] = {}
    lives = [0] * 6
    ends = [0, 0]
    sent: list[Row] = []
    failed: dict[str, list[Row]] = {group: [] for group in GROUPS}
    dead: dict[str, list[Row]] = {group: [] for group in GROUPS}
    for number in range(operations):
        place = rng.randrange(6)
        process = place + 6 * lives[place]
        if place in busy:
            row = busy.pop(place)
            lives[place] += row["type"] == "info"
            rows.append(row)
            continue
        group, member = GROUPS[place % 2], MEMBERS[place % 3 % 2]
        base: Row = {"process": process, "key": None}
        who = {"group": group, "member": member}
        if place in in_hand:
            of, name, messages = in_hand.pop(place)
            if rng.random() < 0.08:
                continue  # it died with them
            outcome = rng.choice(("success", "success", "later"))
            if outcome == "later":
                (dead if rng.random() < 0.3 else failed)[of] += messages
            value: Row = {"group": of, "member": name, "outcome": outcome, "messages": messages}
            row = {**base, "type": "invoke", "f": "finish", "value": value}
            busy[place] = {**row, "type": rng.choice(("ok", "ok", "info"))}
        elif rng.random() < 0.3:
            queue = rng.randrange(2)
            value = {"message": number, "offset": None}
            row = {**base, "type": "invoke", "f": "send", "value": value, "key": f"q{queue}"}
            kind = rng.choices(("ok", "fail", "info"), (8, 1, 1))[0]
            answer = {**value, "offset": ends[queue] if kind == "ok" else None}
            busy[place] = {**row, "type": kind, "value": answer}
            if kind != "fail" or rng.random() < 0.05:
                sent.append({"message": number, "queue": f"q{queue}", "offset": ends[queue], "tries": 0})
                ends[queue] += 1
        elif rng.random() < 0.15 and is_divided:
            queue = rng.randrange(2)
            row = {**base, "type": "invoke", "f": "committed", "value": {"group": group}, "key": f"q{queue}"}
            offset = rng.randrange(ends[queue] + 1) if rng.random() < 0.4 else rng.choice((0, 0, None))
            busy[place] = {**row, "type": "ok", "value": {"group": group, "offset": offset}}
        else:
            row = {**base, "type": "invoke", "f": "consume", "value": {"group": group}}
            messages = _consumed(rng, group, sent, failed[group])
            busy[place] = {**row, "type": "ok", "value": {**who, "messages": messages}}
            if messages:
                in_hand[place] = (group, member, messages)
        rows.append(row)
    return rows + _last(rng, lives, sent, dead, is_divided=is_divided)


def _consumed(rng: random.Random, group: str, sent: list[Row], failed: list[Row]) -> list[Row]:
    if failed and rng.random() < 0.6:
        one = failed.pop(0)
        tries = one["tries"] + rng.choices((1, 0, 2), (12, 1, 1))[0]
        return [{**one, "queue": f"retry/{group}", "offset": rng.randrange(20), "tries": tries}]
    if rng.random() < 0.02:
        return [{"message": 10_000, "queue": "q0", "offset": 3, "tries": 0}]
    first = rng.randrange(len(sent) + 1)
    return sent[first : first + rng.randrange(3)]


def _last(
    rng: random.Random, lives: list[int], sent: list[Row], dead: dict[str, list[Row]], *, is_divided: bool
) -> list[Row]:
    """Most groups consume most of the rest, come to the end, and show their dead letters."""
    rows: list[Row] = []
    for place in range(6):
        process = place + 6 * (lives[place] + 1)
        group, member = GROUPS[place % 2], MEMBERS[place % 3 % 2]
        who = {"group": group, "member": member}

        def done(f: str, value: Row, asked: Row, process: int = process) -> None:
            rows.append({"process": process, "type": "invoke", "f": f, "value": asked, "key": None})
            rows.append({"process": process, "type": "ok", "f": f, "value": value, "key": None})

        left = [one for one in sent if rng.random() < 0.5]
        done("consume", {**who, "messages": left}, {"group": group})
        finished = {**who, "outcome": "success", "messages": left}
        done("finish", finished, finished)
        if rng.random() < 0.95:
            done("settled", who, {"group": group})
        if rng.random() < 0.95 and is_divided:
            done("dead-letters", {"group": group, "messages": dead[group]}, {"group": group})
    return rows


def defined_consumption(
    rows: list[Row], *, is_divided: bool, in_order: bool, is_popped: bool, limit: int
) -> tuple[Counter[str], bool]:
    """(how many of each anomaly, whether all consumers were read to their end)."""
    anomalies: Counter[str] = Counter()

    def consumer(row: Row) -> str | None:
        value = row["value"] or {}
        group, member = value.get("group"), value.get("member")
        if is_divided:
            return group
        return None if group is None or member is None else f"{group}/{member}"

    numbered = list(enumerate(rows))
    ok = [(index, row) for index, row in numbered if row["type"] == "ok"]
    called = [(index, row) for index, row in numbered if row["type"] == "invoke"]
    sends = {kind: {} for kind in ("invoke", "ok", "fail")}  # type: dict[str, dict[int, int]]
    for index, row in numbered:
        if row["f"] == "send" and row["type"] in sends:
            sends[row["type"]].setdefault(row["value"]["message"], index)
    given = [
        (index, consumer(row), row["process"], one)
        for index, row in ok
        if row["f"] == "consume"
        for one in row["value"]["messages"]
    ]
    finished = [
        (index, consumer(row), row["process"], row["value"]["outcome"], one)
        for index, row in called
        if row["f"] == "finish"
        for one in row["value"]["messages"]
    ]
    dead = {
        (consumer(row), one["message"])
        for _, row in ok
        if row["f"] == "dead-letters"
        for one in row["value"]["messages"]
    }
    consumers = sorted(
        {
            name
            for _, row in ok
            if row["f"] in ("join", "consume", "settled", "dead-letters") and (name := consumer(row))
        }
    )
    settled = {consumer(row) for _, row in ok if row["f"] == "settled"}
    read = {consumer(row) for _, row in ok if row["f"] == "dead-letters"}
    complete = [name for name in consumers if name in settled and (name in read or not is_divided)]

    for name in complete:
        for message in sends["ok"]:
            outcomes = {outcome for _, by, _, outcome, one in finished if by == name and one["message"] == message}
            is_done = "success" in outcomes or (name, message) in dead or (not is_divided and outcomes)
            if not is_done:
                anomalies["lost-retry" if outcomes else "unconsumed"] += 1
    for message in {one["message"] for _, by, _, one in given if by in consumers}:
        if not any(message in of for of in sends.values()):
            anomalies["unexpected-consumption"] += 1
        elif message in sends["fail"] and message not in sends["ok"]:
            anomalies["aborted-consumption"] += 1
    if is_popped:
        anomalies["wrong-retry-count"] += sum(
            one["queue"].startswith("retry/") and one["tries"] == 0 for _, by, _, one in given if by in consumers
        )
    elif is_divided:
        for index, by, _, one in given:
            before = any(
                when < index and who == by and outcome == "later" and other["message"] == one["message"]
                and other["tries"] == one["tries"] - 1
                for when, who, _, outcome, other in finished
            )  # fmt: skip
            came_back = one["queue"].startswith("retry/")
            anomalies["wrong-retry-count"] += (
                (one["tries"] > 0 and not before) or (came_back and one["tries"] == 0) or one["tries"] > limit
            )
        for name, message in dead:
            anomalies["early-dead-letter"] += name in consumers and not any(
                who == name and outcome == "later" and one["message"] == message and one["tries"] >= limit
                for _, who, _, outcome, one in finished
            )
    held: dict[str, set[int]] = {}
    for _, row in ok:
        if row["f"] == "send":
            held.setdefault(row["key"], set()).add(row["value"]["offset"])
    for _, _, _, one in given:
        held.setdefault(one["queue"], set()).add(one["offset"])

    def first(name: str, queue: str, offset: int, *, for_good: bool) -> int:
        return min(
            (
                index
                for index, by, _, outcome, one in finished
                if (by, one["queue"], one["offset"]) == (name, queue, offset)
                and not (for_good and outcome == "later" and one["tries"] < limit)
            ),
            default=NEVER,
        )

    for queue, offsets in held.items():
        for name in consumers:
            commits = [
                (index, row["value"]["offset"])
                for index, row in ok
                if row["f"] == "committed" and row["key"] == queue and consumer(row) == name
                and row["value"]["offset"] is not None
            ]  # fmt: skip
            for offset in offsets:
                anomalies["passed-over"] += (
                    is_divided
                    and not is_popped
                    and any(
                        beyond > offset and index < first(name, queue, offset, for_good=False)
                        for index, beyond in commits
                    )
                )
            if not in_order:
                continue
            mine = [(index, process, one) for index, by, process, one in given if (by, one["queue"]) == (name, queue)]
            for index, _, one in mine:
                anomalies["overtaken"] += any(
                    first(name, queue, offset, for_good=True) >= index for offset in offsets if offset < one["offset"]
                )
            spans = sorted(_spans(mine, finished, name, queue))
            for begin, _, process in spans:
                anomalies["overlap"] += any(
                    other != process and (since, other) <= (begin, other) and until > begin and since <= begin
                    and spans.index((since, until, other)) < spans.index((begin, _, process))
                    for since, until, other in spans
                )  # fmt: skip
    return +anomalies, len(complete) == len(consumers)


def _spans(mine: list[Any], finished: list[Any], name: str, queue: str) -> list[tuple[int, int, int]]:
    """(begin, end, process): from the last time that the process was given it to the next time that it finished it."""
    events = [(index, process, one["offset"], True) for index, process, one in mine]
    events += [
        (index, process, one["offset"], False)
        for index, by, process, _, one in finished
        if (by, one["queue"]) == (name, queue)
    ]
    spans, begun = [], {}
    for index, process, offset, is_given in sorted(events):
        if is_given:
            begun[process, offset] = index
        elif (process, offset) in begun:
            spans.append((begun.pop((process, offset)), index, process))
    return spans
