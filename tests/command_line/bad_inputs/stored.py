"""Run directories that were edited, torn or filled with something else, as `check` and `replay` meet them."""

from __future__ import annotations

import json

from tests.command_line.bad_inputs.rows import Content, Row, edited, texts
from tests.command_line.bad_inputs.shared import SOUND_SCENARIO

SCENARIOS = (
    ({"concurrency": 1_000_000}, "scenario.json: concurrency takes a whole number from 1 to 1000, got 1000000"),
    ({"concurrency": "10"}, "scenario.json: concurrency takes a whole number from 1 to 1000, got '10'"),
    ({"rate": 1e9}, "scenario.json: rate takes a number from 0 to 100000, got 1000000000.0"),
    ({"rate": None}, "scenario.json: rate takes a number from 0 to 100000, got None"),
    ({"time_limit_s": 1e9}, "scenario.json: time_limit_s takes a number from 0 to 604800, got 1000000000.0"),
    ({"recovery_s": float("nan")}, "scenario.json: recovery_s takes a number from 0 to 604800, got nan"),
    ({"liveness_s": float("inf")}, "scenario.json: liveness_s takes a number from 0 to 604800, got inf"),
    ({"capture": 1}, "scenario.json: capture takes true or false, got 1"),
    ({"real_clock": "yes"}, "scenario.json: real_clock takes true or false, got 'yes'"),
    ({"max_outage_s": []}, "scenario.json: max_outage_s takes a number from 0 to 604800, got []"),
    ({"seed": -1}, "scenario.json: seed takes a whole number from 0 to 9223372036854775807, got -1"),
    ({"seed": True}, "scenario.json: seed takes a whole number from 0 to 9223372036854775807, got True"),
    ({"system": None}, "scenario.json: system takes text, got None"),
    ({"system": "../x"}, "unknown system '../x'"),
    ({"system": "rocketmq\n"}, "scenario.json: system takes printable text"),
    ({"workload": 5}, "scenario.json: workload takes text, got 5"),
    ({"workload": "chat"}, "unknown workload 'chat'"),
    ({"environment": ["x"]}, "scenario.json: environment takes text, got ['x']"),
    ({"nemesis": "kill"}, "scenario.json: nemesis takes a list of kinds of faults, got 'kill'"),
    ({"nemesis": [None]}, "scenario.json: nemesis takes text, got None"),
    ({"nemesis": ["meteor"]}, "unknown nemesis 'meteor'"),
    ({"nemesis": ["kill"] * 2_000}, "scenario.json: a scenario has at most 1000 faults and settings each, got 2000"),
    ({"schedule": "x"}, "scenario.json: schedule takes a list of lines, got 'x'"),
    ({"schedule": [1]}, "scenario.json: schedule, line 1: takes text, got 1"),
    ({"schedule": ["x"]}, "schedule, line 1: expected when the fault strikes, as seconds such as 12.5, got 'x'"),
    (
        {"schedule": ["x"], "nemesis": ["kill"]},
        "a schedule says itself which faults strike; leave it or the nemesis out",
    ),
    ({"settings": []}, "scenario.json: settings takes a table of keys and values, got []"),
    ({"settings": {"brokers": 0}}, "setting brokers takes a whole number from 1 to 100, got 0"),
    ({"settings": {"brokers": None}}, "scenario.json: setting brokers takes text, a number or true/false, got None"),
    ({"settings": {"segment_bytes": 1}}, "setting segment_bytes takes a whole number from 1024 to 1073741824, got 1"),
    ({"settings": {"x": 1}}, "unknown setting 'x'"),
    ({"mutant": 5}, "scenario.json: mutant takes text, got 5"),
    ({"extra": 1}, "scenario.json: unknown field 'extra' of a scenario"),
    ({"facts": 5}, "scenario.json cannot be read: facts cannot be 5"),
    ({"facts": {"reasons": [5]}}, "scenario.json: facts: reasons, nodes apart and panics must be text"),
    ({"facts": {"panics": []}}, "scenario.json: facts: panics cannot be []"),
    ({"facts": {"storm_from_ns": "x"}}, "scenario.json: facts: storm_from_ns cannot be 'x'"),
    ({"regime": {"latency": "x"}}, "scenario.json cannot be read: regime cannot be {'latency': 'x'}"),
    ({"versions": 5}, "scenario.json cannot be read: versions cannot be 5"),
    ({"trace_hash": 5}, "scenario.json cannot be read: trace_hash cannot be 5"),
)

RECORDS: tuple[tuple[Content, str], ...] = (
    ("", "scenario.json cannot be read: Expecting value"),
    ("{", "scenario.json cannot be read: Expecting property name"),
    ("[]", "scenario.json cannot be read: it must be an object, it is []"),
    ("5", "scenario.json cannot be read: it must be an object, it is 5"),
    ("{}", "scenario.json: scenario lacks the field 'system'"),
    ("[" * 100_000, "scenario.json cannot be read: its brackets are nested too deeply"),
    (b"\xff", "scenario.json cannot be read: 'utf-8' codec"),
    (" " * (33 << 20), "scenario.json cannot be read: it is longer than 32 MiB"),
    ('{"system": "rocketmq", "workload": "log", "rate": ' + "9" * 5_000 + "}", "scenario.json cannot be read: Exceeds"),
)

FAULT = '{"time":1,"package":"kill","number":0,"phase":"start","kind":"kill","happened":true,"targets":["b1"]}\n'
FAULTS: tuple[tuple[Content, str], ...] = (
    ("x\n", "nemesis.jsonl cannot be read: line 1 is no record of a fault"),
    ("{}\n", "nemesis.jsonl cannot be read: line 1 is no record of a fault"),
    (FAULT + "[]\n", "nemesis.jsonl cannot be read: line 2 is no record of a fault"),
    (FAULT + "[" * 100_000 + "\n", "nemesis.jsonl cannot be read: line 2 is no record of a fault"),
    (FAULT.replace("1,", '"1",', 1), "nemesis.jsonl cannot be read: line 1 is no record of a fault"),
    (FAULT.replace("true", "1"), "nemesis.jsonl cannot be read: line 1 is no record of a fault"),
    (FAULT.replace('"b1"', "5"), "nemesis.jsonl cannot be read: line 1 names targets that are no nodes"),
    ("x" * (2 << 20), "nemesis.jsonl cannot be read: line 1 is longer than 1 MiB"),
    (b"\xff\n", "nemesis.jsonl cannot be read: line 1 is no record of a fault"),
)

FILES: tuple[tuple[str, Content, str], ...] = (
    ("history.parquet", "", "history.parquet: not a Parquet file"),
    ("history.parquet", "PAR1 noise PAR1", "history.parquet: not a Parquet file"),
    ("nodes/b1/events.jsonl", "x" * (2 << 20), "the nodes' events in run/nodes cannot be read: line 1 is longer than"),
)


def beside_a_sound_scenario(name: str, content: Content, words: str) -> Row:
    files = {"run/scenario.json": json.dumps(SOUND_SCENARIO), f"run/{name}": content}
    return Row(arguments=("check", "run"), words=words, files=files)


ROWS = (
    *edited("check run", SOUND_SCENARIO, SCENARIOS),
    *edited("replay run", SOUND_SCENARIO, SCENARIOS),
    *texts("check run", "run/scenario.json", RECORDS),
    *texts("replay run", "run/scenario.json", RECORDS),
    *(beside_a_sound_scenario("nemesis.jsonl", content, words) for content, words in FAULTS),
    *(beside_a_sound_scenario(*row) for row in FILES),
)
