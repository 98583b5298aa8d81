"""`stormproof check` and `stormproof export` of histories: what is typed, and what the file says."""

from __future__ import annotations

import gzip

from tests.command_line.bad_inputs.rows import Content, Row, texts, typed
from tests.command_line.bad_inputs.shared import WRITTEN

TYPED = """
=> Missing argument 'PATH…'
nowhere => nowhere is no run directory and no history
nowhere --model register => there is no history nowhere
either.edn => its clients did add (integers), read, which may be --workload set or --workload counter; say
good.edn --workload log --model register => by --workload or by --model, not by both
- - --model register => - is standard input, which can be read only once
good.edn --model nope => unknown model 'nope'
good.edn --model regster => unknown model 'regster'; did you mean
good.edn --workload nope => unknown workload 'nope'
good.edn --workload '' => what follows --workload is empty
good.edn --model register --initial x => --initial takes a value as JSON, e.g. 0 or null, got 'x'
good.edn --model register --initial NaN => --initial takes a value as JSON
good.edn --model register --initial '[[[[' => --initial takes a value as JSON
good.edn --model register --initial <9999> => --initial takes a value as JSON
good.edn --model counter --initial '"x"' => --initial of model counter must be an integer
good.edn --model set --initial 1 => --initial of model set must be a list of elements
good.edn --model mutex --initial 1 => --initial of model mutex must be true for held, or false
good.edn --model priority-queue --initial '[1, "a"]' => that can be compared with each other
good.edn --model register --failed-cas answer => --failed-cas is for --model cas-register
good.edn --model cas-register --failed-cas maybe => 'maybe'; known are: ignored, answer
good.edn --model register --set x=1 => --set is for --workload
good.edn --workload queue --set delivery=maybe => setting delivery takes one of at-most-once
good.edn --workload queue --set delivery= => the value of 'delivery' is empty
good.edn --workload queue --set x=1 => unknown setting 'x' of workload queue
good.edn --workload bank --set total=x => setting total takes a whole number of 64 bits or nothing, got 'x'
good.edn --workload bank --set total=1e309 => setting total takes a whole number of 64 bits or nothing
good.edn --workload bank --set total=<9999> => setting total takes a whole number of 64 bits or nothing
good.edn --workload log --set queues=17 => setting queues takes a whole number from 1 to 16, got 17
good.edn --workload log --set x=1 => unknown setting 'x' of workload log
good.edn --workload register --set keys=0 => setting keys takes a whole number from 1 to 10000, got 0
good.edn --workload list-append --consistency-model nope => unknown consistency model 'nope'
good.edn --workload list-append --assume x => unknown assumption 'x'
good.edn --workload list-append --assume wfr-keys => --assume is for registers
good.edn --consistency-model serializable => its clients did write (integers), which may be --model cas-register or
good.edn --model register --certify folder => cannot write folder: it is a directory
good.edn --model register --certify nowhere/c => cannot write nowhere/c: there is no directory nowhere
good.edn --model register --certify text/c => cannot write text/c: Not a directory
good.edn --workload log --certify c => --certify is for a single history
good.edn good.edn --model register --certify c => --certify is for a single history
good.edn --model register --runs text => Directory 'text' is a file
good.edn --model register --runs text/runs => cannot write into text/runs/checked: Not a directory
good.edn --model register --runs /proc/nowhere => cannot write into /proc/nowhere/checked:
good.edn --model register --master x => --master takes local[2]
good.edn --model register --engine inprocess --master local[2] => leave one of them out
good.edn --model register --accept-vacuous=1 => does not take a value
good.edn --model register --nope => No such option '--nope'
folder => folder is not a run directory: it has no scenario.json; nor a test of Jepsen's, with history.edn; name one
folder --model register => folder is not a run directory
/dev/zero --model register => /dev/zero cannot be read: it is a device, a file or a pipe is expected
/dev/null --model register => /dev/null cannot be read: it is a device
loop --model register => loop
dangling --model register => dangling is a link to nothing, which is not there
text/x --model register => there is no history text/x
<NUL> --model register => no value holds a NUL character
<BYTE> --model register => there is no history \\udcff
<xxxx> --model register => File name too long
binary --model register => binary: line 1, row 0: neither EDN, nor JSON, nor a line of Jepsen's log
text --model register => text: line 1, row 0: neither EDN, nor JSON
empty.parquet --model register => empty.parquet: not a Parquet file
noise.parquet --model register => noise.parquet: not a Parquet file
noise.arrows --model register => noise.arrows: the stream ends within its schema
short.arrows --model register => short.arrows: the stream ends within its schema
empty.arrows --model register => empty.arrows: the stream ends within its schema
good.edn --workload bank => good.edn: line 1, row 0: f must be one of read, transfer, it is write
good.edn --model counter => good.edn: line 1, row 0: f must be one of add, read, it is write
"""


def write(value: str, rest: str = "") -> str:
    return f"{{:process 0, :type :invoke, :f :write, :value {value}{rest}}}"


def written_json(value: str) -> str:
    return f'{{"process": 0, "type": "invoke", "f": "write", "value": {value}}}'


HISTORIES: tuple[tuple[Content, str], ...] = (
    (b"\0" * 100, "neither EDN, nor JSON"),
    ("17", "neither EDN, nor JSON"),
    ('"x"', "an operation must be a map with :process, :type and :f"),
    ("[1,2,3]", "an operation must be a map with :process, :type and :f, it is 1"),
    ("{:process 0 :type}", "an operation is broken: a key without a value"),
    ("{:process 0, :process 1}", "an operation has the key :process twice"),
    ("{" * 100_000, "'{' where its next key should be"),
    ("#{" * 100_000, "brackets are nested deeper than 200"),
    ("#a " * 100_000, "the text ends within an operation"),
    ("#_ " * 100_000, "the text ends within an operation"),
    ("{:process 0 " + "#_ " * 100_000 + ":x}", "'}' where a value was expected"),
    (write("#a " * 100_000 + "1"), "tags are nested deeper than 200"),
    (write("[" * 100_000 + "]" * 100_000), "brackets are nested deeper than 200"),
    (write("{{:a 1} 2}"), "a map has a map as a key"),
    (write("{:a}"), "a map has a key without a value"),
    (write("]"), "']' where"),
    (write("9" * 5_000), "a number of 5000 characters; at most 4000 are read"),
    (write("1x"), "'1x' is no number"),
    (write('"abc'), "the text ends within an operation"),
    (write("\\"), "the text ends within an operation"),
    (write("1", ', :index "x"'), 'index must be a whole number, below 2^63, it is "x"'),
    (write("1").replace(":process 0", ":process -5"), "a number of at least 0, a name, or nemesis, it is -5"),
    (write("1").replace(":process 0", ":process " + "9" * 20), "a number of at least 0, a name, or nemesis"),
    (write("1").replace(":invoke", ":begin"), "type must be one of invoke, ok, fail, info, it is :begin"),
    (write("1").replace(":write", "7"), "f must be a keyword"),
    (write("1") + write("2"), "process 0 invokes write while its write is still open"),
    (write("1").replace(":invoke", ":ok"), "process 0 has ok of write without an open invocation"),
    (WRITTEN + "]", "']' where nothing is open"),
    (WRITTEN.encode("utf-16"), "the text is UTF-16; write it as UTF-8"),
    (write('"').encode()[:-1] + b'\xe4"}', "not UTF-8 text"),
    (gzip.compress(WRITTEN.encode())[:12], "the packed file is cut off"),
    (b"\x1f\x8bjunk", "the gzip file is broken"),
    (b"\xfd7zXZ\0", "it is packed with xz; unpack it first: xz -dc FILE | stormproof check -"),
    (written_json("[" * 900 + "]" * 900), "brackets are nested deeper than 200"),
    (written_json('{"a":' * 300 + "1" + "}" * 300), "brackets are nested deeper than 200"),
    (written_json("[" * 100_000 + "]" * 100_000), "brackets are nested too deeply"),
    (written_json("9" * 5_000), "no JSON: Exceeds the limit"),
    (written_json("tru"), "no JSON"),
    ("[" + written_json('"x'), "the text ends within"),
    (written_json("1").replace('"write"', '"\\ud800"'), "half of a surrogate pair is no text"),
    ('{"process":0,"process":1}', 'an object has the key "process" twice'),
    ("INFO jepsen.util - 0\t:invoke\t:write\t[1\n", "ends too early"),
    ("INFO jepsen.util - 0\t:begin\t:write\t1\n", "type must be one of invoke, ok, fail, info, it is :begin"),
)

NOT_WHAT_WAS_ASKED = (
    ("--model register", ":write, :value 1", ":write, :value 2", "write completes with 2, but was invoked with 1"),
    ("--model cas-register", ":cas, :value [1 2]", ":cas, :value [1 3]", "cas completes with"),
    ("--model counter", ":add, :value 1", ":add, :value 2", "add completes with 2, but was invoked with 1"),
    ("--model set", ":add, :value 1", ":add, :value 2", "add completes with 2, but was invoked with 1"),
    ("--model fifo-queue", ":enqueue, :value 1", ":enqueue, :value 2", "enqueue completes with 2"),
    ("--workload queue", ":enqueue, :value 1", ":enqueue, :value 2", "enqueue completes with 2"),
    ("--workload list-append", ":txn, :value [[:append 1 1]]", ":txn, :value [[:append 1 2]]", "txn completes with"),
    ("--workload rw-register", ":txn, :value [[:w 1 1]]", ":txn, :value [[:w 1 1] [:w 2 2]]", "txn completes with"),
    ("--workload rw-register", ":txn, :value [[:w 1 1]]", ":txn, :value []", "txn completes with"),
)

TRANSACTIONS: tuple[tuple[Content, str], ...] = (
    ("{:process 0, :type :invoke, :f :txn, :value [[:append 1]]}", "a part of a transaction must be [f key value]"),
    (
        "{:process 0, :type :invoke, :f :txn, :value [[:r 1 nil]]}{:process 0, :type :ok, :f :txn, :value [[:r 1 5]]}",
        "micro-operation 0 (r) reads one value, where a list has several",
    ),
    ("{:process 0, :type :invoke, :f :txn, :value 5}", "value must be a map with txn, it is 5"),
    ("{:process 0, :type :invoke, :f :read, :value 5}", "value must be a map with txn, it is 5"),
)

EXPORTED = """
=> Missing argument 'PATH'
nowhere => there is no run directory and no history nowhere
folder => there is no run directory and no history folder
good.edn => good.edn is no history of ours: neither Parquet nor an Arrow stream
/dev/zero => /dev/zero cannot be read: it is a device
noise.parquet => noise.parquet: not a Parquet file
empty.parquet => empty.parquet: not a Parquet file
noise.arrows => noise.arrows: the stream ends within its schema
short.arrows => short.arrows: the stream ends within its schema
empty.arrows => empty.arrows: the stream ends within its schema
loop => loop
<NUL> => no value holds a NUL character
<BYTE> => there is no run directory and no history \\udcff
<xxxx> => File name too long
good.edn --format xml => unknown format 'xml'; known are: edn, json
good.edn --output folder => cannot write folder: it is a directory
good.edn --output nowhere/x => cannot write nowhere/x: there is no directory nowhere
good.edn --output text/x => cannot write text/x: Not a directory
good.edn --output '' => what follows --output is empty
good.edn extra => Got unexpected extra argument (extra)
good.edn --nope => No such option '--nope'
"""

ROWS = (
    *typed("check", TYPED),
    *texts("check mine --model register", "mine", HISTORIES),
    *texts("check mine --workload list-append", "mine", TRANSACTIONS),
    *(
        Row(
            arguments=("check", "mine", *judged.split()),
            words=f"mine: line 2, row 1: {words}",
            files={"mine": f"{{:process 0, :type :invoke, :f {asked}}}\n{{:process 0, :type :ok, :f {answered}}}"},
        )
        for judged, asked, answered, words in NOT_WHAT_WAS_ASKED
    ),
    *typed("export", EXPORTED),
)
