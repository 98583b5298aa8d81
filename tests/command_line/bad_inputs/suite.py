"""`stormproof suite`: what is typed, and what the file says."""

from __future__ import annotations

from tests.command_line.bad_inputs.rows import Content, texts, typed
from tests.command_line.bad_inputs.shared import SOUND_SUITE

TYPED = """
=> Missing argument 'FILE.toml'
nowhere => no suite file nowhere; give a TOML file, or one of: nightly, 
smok => no suite file smok; give a TOML file, or one of: nightly, 
../smoke => no suite file ../smoke
folder => suite file folder cannot be read: it is a directory, a file or a pipe is expected
/dev/zero => suite file /dev/zero cannot be read: it is a device
/dev/null => suite file /dev/null cannot be read: it is a device
binary => suite file binary cannot be read
text => text: not TOML
loop => suite file loop cannot be read: Too many levels of symbolic links
dangling => no suite file dangling
<NUL> => no value holds a NUL character
<xxxx> => cannot be read: File name too long
good.toml extra => Got unexpected extra argument (extra)
good.toml --nope => No such option '--nope'
good.toml --jobs 0 => 0 is not in the range 1<=x<=64
good.toml --jobs 65 => 65 is not in the range 1<=x<=64
good.toml --jobs x => 'x' is not a valid integer
good.toml --engine flink => unknown engine 'flink'
good.toml --capture => no scenario runs where packets can be captured; leave --capture out
good.toml --inventory nowhere => no scenario runs on machines, which --inventory names; leave it out
good.toml --runs text => Directory 'text' is a file
good.toml --runs text/runs => cannot write into text/runs: Not a directory
good.toml --runs /proc/nowhere => cannot write into /proc/nowhere:
good.toml --junit folder => cannot write folder: it is a directory
good.toml --junit text/junit.xml => cannot write text/junit.xml
good.toml --junit /proc/nowhere/junit.xml => cannot write /proc/nowhere/junit.xml
good.toml --junit junit.xml --runs text/runs => cannot write into text/runs: Not a directory
"""

FORMS: tuple[tuple[Content, str], ...] = (
    ("name =", "mine.toml: not TOML: Invalid value"),
    ("x", "mine.toml: not TOML: Expected '='"),
    ("\0", "mine.toml: not TOML: Invalid statement"),
    ("a = " + "[" * 100_000, "mine.toml: not TOML: maximum recursion depth exceeded"),
    ("a." * 50_000 + "a = 1", "mine.toml: line 1 has 50000 dots, at most 500 can be"),
    ("[" + "a." * 50_000 + "a]", "mine.toml: line 1 has 50000 dots"),
    ("a = " + "9" * 5_000, "mine.toml: not TOML: Exceeds the limit"),
    ("#" * (2 << 20), "suite file mine.toml cannot be read: it is longer than 1 MiB"),
    (b"name = '\xff'", "suite file mine.toml cannot be read: 'utf-8' codec"),
    (SOUND_SUITE.encode("utf-16"), "suite file mine.toml cannot be read: 'utf-8' codec"),
    ("", "mine.toml: a suite needs at least one [[matrix]]"),
    ("nmae = 'x'", "mine.toml: unknown key 'nmae' of the suite; did you mean name?"),
    ("matrix = 5", "mine.toml: a suite needs at least one [[matrix]]"),
    ("matrix = [5]", "mine.toml: matrix 1 takes a table of keys and values, got 5"),
    ("defaults = 5", "mine.toml: defaults takes a table of keys and values, got 5"),
    ('[[matrix]]\nsystem = "rocketmq"', "mine.toml: matrix 1 lacks 'workload'"),
    ('[[matrix]]\nworkload = "log"', "mine.toml: matrix 1 lacks 'system'"),
)

NAMES = (
    ("'../../../../tmp/x'", "'../../../../tmp/x' cannot be the name of a suite"),
    ("'/tmp/x'", "'/tmp/x' cannot be the name of a suite"),
    ("'..'", "'..' cannot be the name of a suite"),
    ("'a/b'", "'a/b' cannot be the name of a suite: it names a folder"),
    ("'a b'", "'a b' cannot be the name of a suite"),
    ("'.hidden'", "'.hidden' cannot be the name of a suite"),
    ("'-x'", "'-x' cannot be the name of a suite"),
    ('"a\\u0000"', "'a\\x00' cannot be the name of a suite"),
    ('"a\\u001b[2J"', "'a\\x1b[2J' cannot be the name of a suite"),
    ('"a\\nb"', "'a\\nb' cannot be the name of a suite"),
    (f"'{'x' * 400}'", "has 400 bytes, at most 120 are allowed"),
    (f"'{'ä' * 100}'", "has 200 bytes, at most 120 are allowed"),
    ("5", "name must be text, got 5"),
    ("''", "name must be text, got ''"),
)

KEYS = (
    ("x = 1", "unknown key 'x' of defaults"),
    ("concurrency = 1000000", "matrix 1: concurrency takes a whole number from 1 to 1000, got 1000000"),
    ("concurrency = 0", "matrix 1: concurrency takes a whole number from 1 to 1000, got 0"),
    ("concurrency = 1.5", "matrix 1: concurrency takes a whole number, got 1.5"),
    ("concurrency = true", "matrix 1: concurrency takes a whole number, got True"),
    ("concurrency = '10'", "matrix 1: concurrency takes a whole number, got '10'"),
    ("rate = nan", "matrix 1: rate takes a number from 0 to 100000, got nan"),
    ("rate = inf", "matrix 1: rate takes a number from 0 to 100000, got inf"),
    ("rate = -1", "matrix 1: rate takes a number from 0 to 100000, got -1.0"),
    ("rate = 1e9", "matrix 1: rate takes a number from 0 to 100000, got 1000000000.0"),
    ("rate = 1e-320", "matrix 1: rate takes 0 for no limit, or at least 1e-05 a second"),
    ("time_limit_s = 1e9", "matrix 1: time_limit_s takes a number from 0 to 604800, got 1000000000.0"),
    ("time_limit_s = 2020-01-01", "matrix 1: time_limit_s takes a number, got datetime.date(2020, 1, 1)"),
    ("recovery_s = -1", "matrix 1: recovery_s takes a number from 0 to 604800, got -1.0"),
    ("liveness_s = 61", "matrix 1: liveness_s is a part of the storm"),
    ("max_outage_s = [1]", "matrix 1: max_outage_s takes a number, got [1]"),
    ("seeds = -1", "matrix 1: seeds takes whole numbers from 0, got -1"),
    ("seeds = ['x']", "matrix 1: seeds takes whole numbers from 0, got 'x'"),
    ("seeds = 9223372036854775808", "matrix 1: seeds takes whole numbers from 0, got 9223372036854775808"),
    ("seeds = []", "matrix 1 makes no scenario: one of its lists is empty"),
    ("seeds = { from = -1 }", "matrix 1: seeds takes { from = 1, count = 20 }, got {'from': -1}"),
    ("seeds = { from = 1.5 }", "matrix 1: seeds takes { from = 1, count = 20 }, got {'from': 1.5}"),
    ("seeds = { count = 'x' }", "matrix 1: seeds takes { from = 1, count = 20 }, got {'count': 'x'}"),
    ("seeds = { count = 0 }", "matrix 1 makes no scenario"),
    ("seeds = { count = 10001 }", "matrix 1: seeds takes a count of at most 10000, got 10001"),
    ("seeds = { from = 9223372036854775807, count = 5 }", "matrix 1: seed takes a whole number from 0 to"),
    ("seeds = { form = 1 }", "unknown key 'form' of matrix 1: seeds; did you mean from?"),
    ("seeds = { count = 6000 }\nenvironment = ['simulated', 'docker']", "matrix 1 makes 12000 scenarios"),
    ("settings = 5", "matrix 1: settings takes a table of keys and values, got 5"),
    ("settings = []", "matrix 1 makes no scenario"),
    ("settings = { brokers = 0 }", "setting brokers takes a whole number from 1 to 100, got 0"),
    ("settings = { brokers = nan }", "setting brokers takes a whole number from 1 to 100, got nan"),
    ("settings = { brokers = [] }", "matrix 1: settings.brokers takes text, a number or true/false, got []"),
    ("settings = { segment_bytes = 1 }", "setting segment_bytes takes a whole number from 1024 to"),
    ("settings = { time_scale = 0 }", "setting time_scale takes a number from 0.01 to 100, got 0"),
    ("settings = { x = 1 }", "unknown setting 'x'"),
    ("settings = { flush = 'maybe' }", "setting flush takes one of sync, async, got 'maybe'"),
    ("nemesis = 'meteor'", "unknown nemesis 'meteor'"),
    ("nemesis = ''", "empty nemesis in ''"),
    ("nemesis = ','", "empty nemesis in ','"),
    ("nemesis = []", "matrix 1 makes no scenario"),
    ("nemesis = ['kill', 5]", "matrix 1: nemesis takes text or a list of texts, got 5"),
    ("nemesis = 'kill,kill'", "nemesis kill is named twice"),
    ("nemesis = 'isolate primary every 5 for 10'", "a fault of 10 s is not over when the next interval begins"),
    ("mutant = 'x'", "unknown mutant 'x' of rocketmq"),
    ("mutant = ''", "empty name of a mutant"),
    ("expect = 'invalid'", "matrix 1 has 'expect', but not 'because': say what is expected, and why"),
    ("because = 'it is so'", "matrix 1 has 'because', but not 'expect'"),
    ("anomalies = ['lost']", "matrix 1 has 'anomalies', but not 'expect'"),
    ("expect = 'ill'\nbecause = 'so'", "matrix 1: expect takes one of valid, invalid, unknown, not-valid, got 'ill'"),
    (
        "expect = ['valid']\nbecause = 'so'",
        "matrix 1: expect takes one of valid, invalid, unknown, not-valid, got ['valid']",
    ),
    ("expect = 'valid'\nbecause = ' '", "matrix 1: because takes a reason in words, got ' '"),
    ("expect = 'valid'\nbecause = 5", "matrix 1: because takes a reason in words, got 5"),
    ("expect = 'valid'\nbecause = 'so'\nanomalies = []", "matrix 1: anomalies takes a list of names, got []"),
    ("expect = 'valid'\nbecause = 'so'\nanomalies = 'x'", "matrix 1: anomalies takes a list of names, got 'x'"),
    ("environment = 'mars'", "unknown environment 'mars'"),
    ("environment = ''", "empty name of an environment"),
    ("nemesis = 'reset'", "environment 'simulated' cannot apply 'reset'"),
)

ROWS = (
    *typed("suite", TYPED),
    *texts("suite mine.toml", "mine.toml", FORMS),
    *texts("suite mine.toml", "mine.toml", [(f"name = {name}\n{SOUND_SUITE}", words) for name, words in NAMES]),
    *texts("suite mine.toml", "mine.toml", [(f"{SOUND_SUITE}{line}", words) for line, words in KEYS]),
)
